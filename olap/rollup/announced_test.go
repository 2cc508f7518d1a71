package rollup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// The repair of what a change announced and left damaged fails, again and again, and sections are compared in between.
// They take it for known, so that nobody is alarmed. Of what it says that nobody has, no damage is left.
func TestAComparisonLeavesWhatIsAnnouncedAlone(t *testing.T) {
	conn := refreshed(t, 40)
	execute(t, conn, damages["a row missing"].statements...)
	err := rollup.WithChange(ctx, conn, func(ctx context.Context, change *rollup.Change) error {
		return errors.Join(change.Damage(ctx, ofAcme), change.LeaveDamaged(ctx, "runs", ofAcme),
			change.LeaveDamaged(ctx, "attributions", ofAcme+" WHERE 0"))
	})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	failing := &dyingConn{Conn: conn}
	checker := rollup.NewChecker(failing, olaptest.Anyone, slog.New(slog.NewTextHandler(&said, nil)))
	for range 20 {
		failing.left = 0
		if _, err := checker.Step(ctx); !errors.Is(err, errDied) || checker.Did() != "repair" {
			t.Fatalf("a %s ended with %v", checker.Did(), err)
		}
		failing.left = 1000
		if _, err := checker.Step(ctx); err != nil || checker.Did() == "repair" {
			t.Fatalf("a %s ended with %v", checker.Did(), err)
		}
	}
	s := state(t, conn)
	if len(s.Damaged) != 1 || s.Damaged[0].Source != "runs" || !s.Damaged[0].Announced || said.Len() > 0 {
		t.Errorf("%+v, and the log says %s", s.Damaged, &said)
	}
	steps(t, checker, func() bool { return len(state(t, conn).Damaged) == 0 })
}
