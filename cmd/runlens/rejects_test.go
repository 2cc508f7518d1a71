package main

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// TestRejectsOfAWorkerAreLogged: an operator finds the record, and nothing of a person, however many are rejected.
func TestRejectsOfAWorkerAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Buffer
		r := &loggedRejects{logger: slog.New(slog.NewTextHandler(&log, nil))}
		add := func(n int) {
			for range n {
				r.AddNow(ingest.Reject{Source: "postgres:run", Field: "status", Error: "must be one of …", Record: []byte(`{` +
					`"record":"run","organization_id":"acme","run_id":"0B7E4D2C-9F3A-4C61-8A55-2F1D6C9E7B11",` +
					`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","initiator_identifier":"ada@example.com"}`)})
			}
		}
		add(12)
		time.Sleep(time.Minute)
		add(1)
		r.AddNow(ingest.Reject{Source: "postgres:run", Error: "it is no record", Record: []byte(`"ada@example.com"`)})
		r.AddNow(ingest.Reject{Source: "postgres:run", Field: "run_id", Error: "must be a UUID", Record: []byte(
			`{"organization_id":"acme","run_id":"ada@example.com","agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10"}`)})
		r.Close()

		one := `level=WARN msg="rejected a record" source=postgres:run organization=acme ` +
			`id=0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11 field=status error="must be one of …"`
		want := strings.Repeat(one+"\n", 10) +
			"level=WARN msg=\"rejected more records; --rejects FILE keeps all of them\" count=2\n" + one + "\n" +
			"level=WARN msg=\"rejected a record\" source=postgres:run organization=\"\" id=\"\" field=\"\"" +
			" error=\"it is no record\"\n" +
			"level=WARN msg=\"rejected a record\" source=postgres:run organization=acme id=\"\" field=run_id" +
			" error=\"must be a UUID\"\n"
		var got strings.Builder
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, " ") // the time
			got.WriteString(line)
		}
		if got.String() != want {
			t.Errorf("logged\n%s\nwant\n%s", got.String(), want)
		}
	})
}
