package console

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/usage"
)

// The console reads what a server writes: every field, and the values of a group by the server's names.
func TestUsageIsReadAsServersWriteIt(t *testing.T) {
	for by, columns := range map[usage.Grouping][]string{usage.ByKey: keyColumns, usage.ByQuestion: questionColumns} {
		if want := by.Columns(); !slices.Equal(columns, want) {
			t.Errorf("%s: the columns %v, want %v", by, columns, want)
		}
	}
	ms := 7.5
	of := []usage.Summary{{Group: []string{"acme", "key"}, Questions: 1, Refused: 2, Limited: 3, RowsRead: 4, P95Ms: &ms,
		MaxMs: &ms}}
	written, err := json.Marshal(usage.Overview{Since: time.Unix(1, 0).UTC(), Keys: of, Slowest: of})
	if err != nil {
		t.Fatal(err)
	}
	var o overview
	if err := json.Unmarshal(written, &o); err != nil {
		t.Fatal(err)
	}
	read, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var again usage.Overview
	if err := json.Unmarshal(read, &again); err != nil {
		t.Fatal(err)
	}
	if rewritten, err := json.Marshal(again); err != nil || !bytes.Equal(rewritten, written) {
		t.Errorf("read %s of\n%s, %v", rewritten, written, err)
	}
}
