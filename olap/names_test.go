package olap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

// Whenever an agent gets another name while a question is answered, the next answers have it, although no record was
// stored.
func TestNamesBetweenEveryTwoStatements(t *testing.T) {
	store := olaptest.OpenStore(t).Conn()
	conn := olaptest.Hold(store)
	engine := cachingEngine(conn)
	versions := 0
	rename := func() (name string) {
		versions++
		name = fmt.Sprint("name ", versions)
		olaptest.Load(t, store, olaptest.Records{Agents: []olaptest.Agent{{Organization: "acme", ID: olaptest.ShortID(1),
			Name: name, UpdatedAt: time.Date(2026, 1, 1, versions, 0, 0, 0, time.UTC)}}})
		return name
	}
	byAgent := by(totals, "agent_id")
	rename()
	for number, sent := 1, 1; number <= sent; number++ {
		run := runOn(number, 1, "FAILED")
		run.AgentID = olaptest.ShortID(1)
		olaptest.Load(t, store, olaptest.Records{Runs: []olaptest.Run{run}}) // so that it is read again
		pass(t, store, 5*time.Millisecond)
		name := ""
		conn.Restart()
		conn.Before(number, func() { name = rename() })
		ask(t, engine, "acme", byAgent)
		sent = max(sent, conn.Sent())
		for range 2 {
			if got := ask(t, engine, "acme", byAgent).Rows[0][1]; name != "" && got != name {
				t.Errorf("before statement %d: %v, want %v", number, got, name)
			}
		}
	}
}
