package olap_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
)

// keepSecret stores a secret that was made some time ago.
func keepSecret(t *testing.T, conn driver.Conn, name, value string, age time.Duration) {
	t.Helper()
	statement := fmt.Sprintf("INSERT INTO secrets (name, value, created_at) SELECT $1, $2, now64(9) - "+
		"toIntervalSecond(%d)", int(age.Seconds()))
	execute(t, conn, statement, name, value)
}

// Which secret signs, which others are accepted.
func TestCursorSecrets(t *testing.T) {
	t.Parallel()
	const old, fresh = 2 * olap.CursorSecretDelay, olap.CursorSecretDelay / 2
	type kept struct {
		name, value string
		age         time.Duration
	}
	for name, c := range map[string]struct {
		kept []kept
		want string
	}{
		"the first one signs at once": {[]kept{{"cursor", "a", 0}}, "[a]"},
		"a new one is accepted":       {[]kept{{"cursor", "a", old}, {"cursor/2", "b", fresh}}, "[a b]"},
		"then signs":                  {[]kept{{"cursor", "a", 2 * old}, {"cursor/2", "b", old}}, "[b a]"},
		"two before it": {[]kept{{"cursor", "a", 3 * old}, {"cursor/2", "b", 2 * old},
			{"cursor/3", "c", old}}, "[c b]"},
		"one before it and one to come": {[]kept{{"cursor", "a", 3 * old}, {"cursor/2", "b", old},
			{"cursor/3", "c", fresh}}, "[b a c]"},
		"the first of the same number": {[]kept{{"cursor", "b", old}, {"cursor", "a", old - time.Second},
			{"cursor/2", "d", old}, {"cursor/2", "c", 0}}, "[d b]"},
		"another store's": {[]kept{{"cursor", "a", old}, {"cursor of another cell", "z", fresh}}, "[a z]"},
		"another store's, after a rotation": {[]kept{{"cursor", "a", 3 * old}, {"cursor of another cell", "z", 2 * old},
			{"cursor/2", "b", old}}, "[b a z]"},
		"another store's, after two": {[]kept{{"cursor", "a", 4 * old}, {"cursor of another cell", "z", 3 * old},
			{"cursor/2", "b", 2 * old}, {"cursor/3", "c", old}}, "[c b]"},
		"numbers, not letters, have order": {[]kept{{"cursor/9", "i", 2 * old}, {"cursor/10", "j", old}}, "[j i]"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := olaptest.OpenStore(t).Conn()
			for _, k := range c.kept {
				keepSecret(t, conn, k.name, k.value, k.age)
			}
			got, err := olap.CursorSecrets(context.Background(), conn)
			if text := fmt.Sprintf("%s", got); err != nil || text != c.want {
				t.Errorf("got %s, %v, want %s", text, err, c.want)
			}
		})
	}
}

// Servers and commands that make a secret at the same time end with the same ones.
func TestCursorSecretsAreMadeAndRotatedOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	together := func(do func() error) {
		t.Helper()
		var group sync.WaitGroup
		failures := make(chan error, 8)
		for range cap(failures) {
			group.Go(func() { failures <- do() })
		}
		group.Wait()
		close(failures)
		for err := range failures {
			var pending *olap.PendingSecretError
			if err != nil && !errors.As(err, &pending) {
				t.Error(err)
			}
		}
	}
	secrets := func() [][]byte {
		t.Helper()
		got, err := olap.CursorSecrets(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	together(func() error { _, err := olap.CursorSecrets(ctx, conn); return err })
	first := secrets()
	if len(first) != 1 || len(first[0]) < 32 {
		t.Fatalf("%d secrets", len(first))
	}
	together(func() error { _, err := olap.RotateCursorSecret(ctx, conn); return err })
	second := secrets()
	if len(second) != 2 || string(second[0]) != string(first[0]) || string(second[1]) == string(first[0]) {
		t.Errorf("%d secrets after the rotation, the first signs: %v", len(second), string(second[0]) == string(first[0]))
	}
	var pending *olap.PendingSecretError
	if _, err := olap.RotateCursorSecret(ctx, conn); !errors.As(err, &pending) ||
		time.Until(pending.SignsFrom) > olap.CursorSecretDelay {
		t.Errorf("rotated again at once: %v", err)
	}
}
