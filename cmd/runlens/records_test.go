package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/runlens/runlens/ingest/normalize"
)

// The page of records says what the rules of ingest do: fields, nulls, lengths and all allowed values; and its examples
// are records.
func TestPageOfRecords(t *testing.T) {
	page, err := os.ReadFile("../../http/records.md")
	must(t, err)
	parts := strings.Split(string(page), "\n## `")[1:]
	if len(parts) != len(normalize.Kinds) {
		t.Fatalf("the page has %d kinds of %d", len(parts), len(normalize.Kinds))
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\w+ \\| (yes|no) \\| (.*) \\|$")
	lengths := regexp.MustCompile(`^(\d+) to (\d+) characters`)
	for i, kind := range normalize.Kinds {
		name, text, _ := strings.Cut(parts[i], "`")
		if name != string(kind) {
			t.Errorf("kind %d of the page is %s, want %s", i, name, kind)
		}
		example := regexp.MustCompile("(?s)```json\n(.*?)\n```").FindStringSubmatch(text)
		var fields []string
		for _, r := range row.FindAllStringSubmatch(text, -1) {
			field, null, rule := r[1], r[2] == "yes", r[3]
			fields = append(fields, field)
			with := func(value any) string { return refusalOfRecord(t, example[1], field, value) }
			if null != normalize.Nullable(field) || (with(nil) == "") != null {
				t.Errorf("%s.%s may be null: the page says %v", kind, field, null)
			}
			values := regexp.MustCompile("^(`\\w+`(, )?)+").FindString(rule)
			allowed := strings.ReplaceAll(values, "`", "")
			said, isEnum := strings.CutPrefix(with("nonsense"), field+": must be one of ")
			if !isEnum {
				said = ""
			}
			if said != allowed {
				t.Errorf("%s.%s may be %q, the page says %q", kind, field, said, allowed)
			}
			for value := range strings.SplitSeq(allowed, ", ") {
				if reason := with(value); allowed != "" && reason != "" {
					t.Errorf("%s.%s may not be %s: %s", kind, field, value, reason)
				}
			}
			if bounds := lengths.FindStringSubmatch(rule); bounds != nil {
				least, most := number(t, bounds[1]), number(t, bounds[2])
				for length, right := range map[int]bool{least - 1: false, least: true, most: true, most + 1: false} {
					if length >= 0 && (with(strings.Repeat("é", length)) == "") != right {
						t.Errorf("%s.%s may have %d characters: the page says %v", kind, field, length, right)
					}
				}
			}
		}
		if !slices.Equal(fields, normalize.Fields(kind)) {
			t.Errorf("the page says of %s the fields %q, want %q", kind, fields, normalize.Fields(kind))
		}
		if reason := refusalOfRecord(t, example[1], "", nil); reason != "" {
			t.Errorf("the example of %s: %s", kind, reason)
		}
	}
}

// refusalOfRecord is why ingest refuses a record with a field replaced, or empty.
func refusalOfRecord(t *testing.T, record, field string, value any) string {
	t.Helper()
	var members map[string]any
	must(t, json.Unmarshal([]byte(record), &members))
	if field != "" {
		members[field] = value
	}
	line, err := json.Marshal(members)
	must(t, err)
	var raw normalize.Raw
	if err = normalize.ReadJSON(line, &raw); err == nil {
		err = normalize.NewNormalizer().Check(&raw)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func number(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	must(t, err)
	return n
}
