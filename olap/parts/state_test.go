package parts

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What two lists of parts, each "name=hash", say about the rows that came in between.
func TestSince(t *testing.T) {
	const table = "/store/79b/79bf3222-bc6e-4fc7-8b12-00a2718ced47/"
	const other = "/store/12c/12cf3222-bc6e-4fc7-8b12-00a2718ced47/"
	const elsewhere = "/data/runlens/api_keys/"
	start := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	at := func(dir string, uptime uint32, parts string) State {
		var rows []partRow
		for p := range strings.FieldsSeq(parts) {
			name, hash, _ := strings.Cut(p, "=")
			rows = append(rows, partRow{Name: name, Path: dir + name + "/", Hash: hash, Rows: 1,
				Now: start.Add(time.Hour), Uptime: uptime})
		}
		return stateOf(rows)
	}
	const hour = 3600
	for what, c := range map[string]struct {
		before, after string
		dir           string // of after, if it is another one
		uptime        uint32 // then, if it is another one
		added         string
		unknown       bool
	}{
		"nothing":              {before: "all_1_1_0=a all_2_2_0=b", after: "all_2_2_0=b all_1_1_0=a"},
		"an insert":            {before: "all_1_1_0=a", after: "all_1_1_0=a all_2_2_0=b", added: "all_2_2_0"},
		"an insert with a gap": {before: "all_1_1_0=a", after: "all_1_1_0=a all_9_9_0=b", added: "all_9_9_0"},
		"out of order": {before: "all_1_1_0=a all_3_3_0=b", after: "all_1_1_0=a all_2_2_0 all_3_3_0=b",
			added: "all_2_2_0"},
		"a merge":                  {before: "all_1_1_0=a all_2_2_0=b", after: "all_1_2_1=c"},
		"a merge of merged parts":  {before: "all_1_4_1=a all_5_8_2=b all_9_9_0=c", after: "all_1_8_3=d all_9_9_0=c"},
		"a merge with an insert":   {before: "all_1_1_0=a", after: "all_1_2_1=c", added: "all_1_2_1"},
		"a merge around an insert": {before: "all_1_1_0=a all_3_3_0=b", after: "all_1_3_1=c", added: "all_1_3_1"},
		"a merge before one":       {before: "all_2_2_0=a", after: "all_1_2_1=c", added: "all_1_2_1"},
		"a merge of one part":      {before: "all_1_1_0=a", after: "all_1_1_1=b"},
		"a merge after a mutation": {before: "all_1_3_1_4=a all_5_5_0=b", after: "all_1_5_2_4=c", added: "all_1_5_2_4"},

		"a mutation":             {before: "all_1_1_0=a", after: "all_1_1_0_2=b", unknown: true},
		"that changed nothing":   {before: "all_1_1_0=a", after: "all_1_1_0_2=a", unknown: true},
		"of one part so far":     {before: "all_1_1_0=a all_2_2_0=b", after: "all_1_1_0_3=c all_2_2_0=b", unknown: true},
		"of what was not there":  {before: "all_1_1_0=a", after: "all_1_1_0=a all_2_2_0_3=c", unknown: true},
		"and a merge":            {before: "all_1_1_0=a all_2_2_0=b", after: "all_1_2_1_3=c", unknown: true},
		"another mutation":       {before: "all_1_1_0_2=a all_3_3_0=b", after: "all_1_3_1_4=c", unknown: true},
		"a removal":              {before: "all_1_1_0=a all_2_2_0=b", after: "all_1_1_0=a", unknown: true},
		"a removal and a merge":  {before: "all_1_1_0=a all_2_2_0=b all_3_3_0=c", after: "all_1_2_1=d", unknown: true},
		"an empty part":          {before: "all_1_1_0=a", after: "all_1_1_1=empty", unknown: true},
		"other rows":             {before: "all_1_1_0=a", after: "all_1_1_0=b", unknown: true},
		"an empty table":         {before: "", after: ""},
		"the first part":         {before: "", after: "all_1_1_0=a", unknown: true},
		"none any more":          {before: "all_1_1_0=a", after: "", unknown: true},
		"another table":          {before: "all_1_1_0=a", after: "all_1_1_0=a", dir: other, unknown: true},
		"a table without a UUID": {before: "all_1_1_0=a", after: "all_1_1_0=a", dir: elsewhere, unknown: true},
		"a start":                {before: "all_1_1_0=a all_2_2_0=b", after: "all_1_2_1=c", uptime: hour - 3, unknown: true},

		"a rounded age": {before: "all_1_1_0=a", after: "all_1_1_0=a all_2_2_0=b", uptime: hour - 1, added: "all_2_2_0"},

		"another kind": {before: "all_1_1_0=a", after: "all_1_1_0=a patch-1-all_2_2_0=b", unknown: true},
		"as it was":    {before: "all_1_1_0=a patch-1-all_2_2_0=b", after: "all_1_1_0=a patch-1-all_2_2_0=b"},
	} {
		if c.dir == "" {
			c.dir = table
		}
		if c.uptime == 0 {
			c.uptime = hour
		}
		after := at(c.dir, c.uptime, c.after)
		for i := range after.parts {
			if after.parts[i].hash == "empty" {
				after.parts[i].rows = 0
			}
		}
		parts, ok := after.since(at(table, hour, c.before))
		var added []string
		for _, p := range parts {
			added = append(added, p.name)
		}
		if ok == c.unknown || ok && !slices.Equal(added, strings.Fields(c.added)) {
			t.Errorf("%s: %q were added, and that is known: %v", what, added, ok)
		}
	}
	if _, ok := at(table, hour, "").since(State{}); ok {
		t.Error("something is known of a table that was never read")
	}
}
