package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"
)

// storedRuns reads the summary of `runlens ingest --json`. Only a complete ingest acknowledges its records.
func storedRuns(summary []byte) (int, error) {
	var s struct {
		Stored   struct{ Runs int }
		Complete bool
	}
	if err := json.Unmarshal(summary, &s); err != nil {
		return 0, fmt.Errorf("the summary of ingest: %w", err)
	}
	if !s.Complete {
		return 0, errors.New("the ingest is not complete")
	}
	return s.Stored.Runs, nil
}

// writeRuns writes an agent and so many completed runs of it, with ids of their own, as NDJSON.
func writeRuns(file, organization, agentName string, runs int, at time.Time) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	instant := at.UTC().Format("2006-01-02T15:04:05.000Z")
	agent := uuid.New()
	if err := writeLine(f, `{"record":"agent","organization_id":%q,"agent_id":%q,"name":%q,"updated_at":%q}`,
		organization, agent, agentName, instant); err != nil {
		return err
	}
	for range runs {
		if err := writeLine(f, `{"record":"run","organization_id":%q,"run_id":%q,"agent_id":%q,"status":"COMPLETED",`+
			`"initiator_identifier":"ada@example.com","created_at":%q,"updated_at":%q}`,
			organization, uuid.New(), agent, instant, instant); err != nil {
			return err
		}
	}
	return f.Close()
}

func writeLine(out io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(out, format+"\n", args...)
	return err
}
