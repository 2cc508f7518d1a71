package ingest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
)

// A record that nobody can read is rejected alone however deep its JSON is, and its reject can be written and read
// again. JSON of 10,000 levels is the deepest that is read, and so one more than fits into a reject.
func TestDeepRecordsAreRejectedAlone(t *testing.T) {
	for depth, field := range map[int]string{9_999: "deep", 10_000: "deep", 10_001: ""} {
		deep := `{"record":"run","deep":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
		var rejects []ingest.Reject
		summary, err := ingest.Run(context.Background(), collect(nil, &rejects, text("a", deep, run(1, 1, "FAILED"))))
		if err != nil || summary.Runs != 1 || len(rejects) != 1 || rejects[0].Field != field {
			t.Errorf("depth %d: %+v, %d rejects, %v; want one of field %q", depth, summary, len(rejects), err, field)
			continue
		}
		line, err := rejects[0].AppendJSON(nil)
		if err != nil {
			t.Errorf("depth %d: the reject can't be written: %.200v", depth, err)
			continue
		}
		again := ingestRejected(t, string(line))
		if again.Field != field || !bytes.Contains(line, []byte("[[[")) {
			t.Errorf("depth %d: read again it is a fault of %q, want %q", depth, again.Field, field)
		}
	}
}

// ingestRejected is the reject of a file with one line.
func ingestRejected(t *testing.T, line string) ingest.Reject {
	t.Helper()
	var rejects []ingest.Reject
	_, err := ingest.Run(context.Background(), collect(nil, &rejects, text("again", strings.TrimSuffix(line, "\n"))))
	if err != nil || len(rejects) != 1 {
		t.Fatalf("%d rejects, %v", len(rejects), err)
	}
	return rejects[0]
}

// Bytes that are no UTF-8, in a file's name or in a header, don't keep a reject from being written.
func TestRejectsOfNamesThatAreNoUTF8(t *testing.T) {
	file := &source.File{Name: "caf\xe9.csv", Format: source.CSV, Kind: normalize.KindAgent, IgnoreUnknown: true,
		Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("organization_id,agent_id,name,updated_at,farbt\xf6ne\nacme,x,Ada,y\n")), nil
		}}
	var rejects []ingest.Reject
	if _, err := ingest.Run(context.Background(), collect(nil, &rejects, file)); err != nil || len(rejects) != 1 {
		t.Fatalf("%d rejects, %v", len(rejects), err)
	}
	line, err := rejects[0].AppendJSON(nil)
	var got struct {
		Source, Error string
		Record        struct{ CSV normalize.CSV }
	}
	if err != nil || json.Unmarshal(line, &got) != nil || got.Source != "caf\ufffd.csv" || got.Error == "" ||
		!slices.Contains(got.Record.CSV.Columns, "farbt\ufffdne") {
		t.Errorf("got %+v, %v", got, err)
	}
}
