package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A session whose transaction ends while the source is asked is seen to have ended, in one transaction too.
func TestSessionsThatEnd(t *testing.T) {
	t.Parallel()
	address, _ := layout(t)
	database := open(t, address)
	var pids [2]string
	var sessions [2]*pgx.Conn
	for i := range sessions {
		var err error
		if sessions[i], err = pgx.Connect(t.Context(), address); err != nil {
			t.Fatal(err)
		}
		defer sessions[i].Close(t.Context())
		if _, err := sessions[i].Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		pids[i] = fmt.Sprintf("session %d,", sessions[i].PgConn().PID())
	}
	found, err := database.SessionsThen(t.Context(), func() {
		if _, err := sessions[0].Exec(t.Context(), "COMMIT"); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := map[string]bool{}
	for _, f := range found {
		for _, pid := range pids {
			if strings.HasPrefix(f.Name, pid) {
				ended[pid] = f.Ended
			}
		}
	}
	if len(ended) != 2 || !ended[pids[0]] || ended[pids[1]] {
		t.Errorf("the first of %v has ended, and not the second: %v of %+v", pids, ended, found)
	}
}
