package olaptest

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/conform"
)

// ShortID is the UUID that scripts of query cases write as @n.
func ShortID(n int) uuid.UUID { return conform.ShortID(n) }

// Body is the request of a query.
func (q Query) Body() []byte {
	body, err := json.Marshal(q)
	if err != nil {
		panic(err) // it is texts and numbers
	}
	return body
}

// RecordsOf are the records of a step of a script.
func RecordsOf(t testing.TB, step conform.Step) (records Records) {
	t.Helper()
	for _, record := range step.Records {
		var err error
		switch record.Kind() {
		case "agent":
			records.Agents, err = appendRecord(records.Agents, record)
		case "run":
			records.Runs, err = appendRecord(records.Runs, record)
		default:
			records.Attributions, err = appendRecord(records.Attributions, record)
		}
		if err != nil {
			t.Fatalf("line %d: %v: %v", step.Line, record, err)
		}
	}
	return records
}

func appendRecord[R any](records []R, record conform.Record) ([]R, error) {
	fields := maps.Clone(record)
	delete(fields, "record")
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	var read R
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&read)
	return append(records, read), err
}
