package normalize

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	agentLine = `{"record":"agent","organization_id":"acme","agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10",` +
		`"name":"Support","updated_at":"2026-01-31T09:30:00.1239+02:00"}`
	runLine = `{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11",` +
		`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED","created_at":"2026-01-31T09:30:00Z",` +
		`"updated_at":"2026-01-31T09:31:00Z"}`
	attrLine = `{"record":"attribution","organization_id":"acme",` +
		`"attribution_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b12","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11",` +
		`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","user_identifier":"ada@example.com",` +
		`"activity_type":"initiated","run_initiation_type":"human","source":"web","occurred_at":"2026-01-31T09:30:00Z"}`
)

// with sets a field of a line to a JSON value; an empty value takes the field away.
func with(line, field, value string) string {
	if start := strings.Index(line, `"`+field+`":`); start >= 0 {
		end := start + strings.IndexAny(line[start+len(field)+3:], ",}") + len(field) + 3
		if line[end] == ',' {
			end++
		}
		line = line[:start] + line[end:]
		line = strings.Replace(line, ",}", "}", 1)
	}
	if value == "" {
		return line
	}
	return strings.TrimSuffix(line, "}") + fmt.Sprintf(`,%q:%s}`, field, value)
}

func quoted(n int, character string) string { return `"` + strings.Repeat(character, n) + `"` }

// Contract 3, a case for each rule that accepts.
func TestAccepts(t *testing.T) {
	for name, line := range map[string]string{
		"agent":                 agentLine,
		"run":                   runLine,
		"attribution":           attrLine,
		"agent with everything": with(with(agentLine, "slug", quoted(200, "é")), "deleted_at", `"2026-01-31T09:30:00Z"`),
		"nulls where they may be": with(with(with(with(runLine, "parent_run_id", "null"), "initiator_identifier", "null"),
			"initiator_name", "null"), "initiator_type", "null"),
		"empty name":                 with(agentLine, "name", `""`),
		"name of 500 characters":     with(agentLine, "name", quoted(500, "😀")),
		"organization of 64":         with(agentLine, "organization_id", quoted(64, "a")),
		"organization's characters":  with(agentLine, "organization_id", `"aZ0._:-"`),
		"UUID in capitals":           with(agentLine, "agent_id", `"0B7E4D2C-9F3A-4C61-8A55-2F1D6C9E7B10"`),
		"first instant of the store": with(runLine, "created_at", `"1900-01-01T00:00:00Z"`),
		"last instant of the store":  with(runLine, "created_at", `"2261-12-31T23:59:59.9999Z"`),
		"supporting run": with(with(runLine, "kind", `"sub_agent"`), "parent_run_id",
			`"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b13"`),
		"initiator of any form": with(runLine, "initiator_identifier", `"cron job 7"`),
		"initiator of 320":      with(runLine, "initiator_identifier", quoted(320, "😀")),
		"address of 320 octets": with(attrLine, "user_identifier", `"`+strings.Repeat("a", 308)+`@example.com"`),
		"domain of 255 octets":  with(attrLine, "user_identifier", `"a@`+strings.Repeat("b", 255)+`"`),
		"phone number":          with(attrLine, "user_identifier", `"+15550100"`),
		"shortest phone number": with(attrLine, "user_identifier", `"+15"`),
		"longest phone number":  with(attrLine, "user_identifier", `"+123456789012345"`),
		"source of 64":          with(attrLine, "source", quoted(64, "é")),
		"address with two @":    with(attrLine, "user_identifier", `"\"a@b\"@example.com"`),
	} {
		if _, err := read([]byte(line)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, line)
		}
	}
}

// Contract 3, a case for each rule that rejects, with the field it names.
func TestRejects(t *testing.T) {
	for _, c := range []struct{ name, line, field string }{
		{"not JSON", `{"record"`, ""},
		{"not an object", `[]`, ""},
		{"data after the object", agentLine + "{}", ""},
		{"invalid UTF-8", strings.Replace(agentLine, "Support", "\xff", 1), ""},
		{"no kind", with(agentLine, "record", ""), "record"},
		{"unknown kind", with(agentLine, "record", `"person"`), "record"},
		{"unknown field", with(agentLine, "colour", `"red"`), "colour"},
		{"field of another kind", with(agentLine, "status", `null`), "status"},
		{"letter case", strings.Replace(agentLine, `"name"`, `"Name"`, 1), "Name"},
		{"field given twice", strings.TrimSuffix(agentLine, "}") + `,"name":"x"}`, "name"},
		{"number for a text", with(agentLine, "name", "7"), "name"},
		{"required field absent", with(agentLine, "name", ""), "name"},
		{"required field null", with(runLine, "status", "null"), "status"},
		{"name of 501", with(agentLine, "name", quoted(501, "a")), "name"},
		{"empty slug", with(agentLine, "slug", `""`), "slug"},
		{"slug of 201", with(agentLine, "slug", quoted(201, "a")), "slug"},
		{"empty organization", with(agentLine, "organization_id", `""`), "organization_id"},
		{"organization of 65", with(agentLine, "organization_id", quoted(65, "a")), "organization_id"},
		{"organization with a space", with(agentLine, "organization_id", `"a b"`), "organization_id"},
		{"UUID without hyphens", with(agentLine, "agent_id", `"0b7e4d2c9f3a4c618a552f1d6c9e7b10"`), "agent_id"},
		{"UUID in braces", with(agentLine, "agent_id", `"{0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10}"`), "agent_id"},
		{"no UUID", with(runLine, "parent_run_id", `"x"`), "parent_run_id"},
		{"time without offset", with(agentLine, "updated_at", `"2026-01-31T09:30:00"`), "updated_at"},
		{"a date", with(runLine, "created_at", `"2026-01-31"`), "created_at"},
		{"no such day", with(runLine, "created_at", `"2026-02-30T00:00:00Z"`), "created_at"},
		{"before the store", with(runLine, "created_at", `"1899-12-31T23:59:59Z"`), "created_at"},
		{"after the store", with(runLine, "created_at", `"2262-01-01T00:00:00Z"`), "created_at"},
		{"bad deleted_at", with(agentLine, "deleted_at", `"yesterday"`), "deleted_at"},
		{"unknown run kind", with(runLine, "kind", `"robot"`), "kind"},
		{"unknown status", with(runLine, "status", `"completed"`), "status"},
		{"initiator of 321", with(runLine, "initiator_identifier", quoted(321, "a")), "initiator_identifier"},
		{"initiator name of 501", with(runLine, "initiator_name", quoted(501, "a")), "initiator_name"},
		{"unknown initiator type", with(runLine, "initiator_type", `"robot"`), "initiator_type"},
		{"empty initiator type", with(runLine, "initiator_type", `""`), "initiator_type"},
		{"no person", with(attrLine, "user_identifier", ""), "user_identifier"},
		{"blank person", with(attrLine, "user_identifier", `"  "`), "user_identifier"},
		{"neither address nor number", with(attrLine, "user_identifier", `"ada"`), "user_identifier"},
		{"address without a domain", with(attrLine, "user_identifier", `"ada@"`), "user_identifier"},
		{"address without a local part", with(attrLine, "user_identifier", `"@example.com"`), "user_identifier"},
		{"address with a space", with(attrLine, "user_identifier", `"a da@example.com"`), "user_identifier"},
		{"address of 321 octets", with(attrLine, "user_identifier", `"`+strings.Repeat("a", 309)+`@example.com"`),
			"user_identifier"},
		{"domain of 256 octets", with(attrLine, "user_identifier", `"a@`+strings.Repeat("b", 256)+`"`), "user_identifier"},
		{"number of one digit", with(attrLine, "user_identifier", `"+1"`), "user_identifier"},
		{"number with 16 digits", with(attrLine, "user_identifier", `"+1234567890123456"`), "user_identifier"},
		{"number that begins with 0", with(attrLine, "user_identifier", `"+0555"`), "user_identifier"},
		{"number with a hyphen", with(attrLine, "user_identifier", `"+1-555"`), "user_identifier"},
		{"user name of 501", with(attrLine, "user_name", quoted(501, "a")), "user_name"},
		{"unknown activity", with(attrLine, "activity_type", `"watched"`), "activity_type"},
		{"unknown initiation", with(attrLine, "run_initiation_type", `"robot"`), "run_initiation_type"},
		{"empty source", with(attrLine, "source", `""`), "source"},
		{"source of 65", with(attrLine, "source", quoted(65, "a")), "source"},
		{"occurred_at absent", with(attrLine, "occurred_at", ""), "occurred_at"},
	} {
		_, err := read([]byte(c.line))
		if rejected, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%s: accepted\n%s", c.name, c.line)
		} else if rejected.Field != c.field || rejected.Reason == "" {
			t.Errorf("%s: rejected for %q (%s), want %q", c.name, rejected.Field, rejected.Reason, c.field)
		} else if strings.Contains(rejected.Reason, "Go ") || strings.Contains(rejected.Reason, "normalize.") {
			t.Errorf("%s: the reason mentions Go: %s", c.name, rejected.Reason)
		}
	}
}

func TestNormalizes(t *testing.T) {
	record, err := read([]byte(agentLine))
	if err != nil {
		t.Fatal(err)
	}
	// Cut, not rounded, and in UTC.
	if want := time.Date(2026, 1, 31, 7, 30, 0, 123e6, time.UTC).UnixMilli(); record.(Agent).UpdatedAt != want {
		t.Errorf("updated_at %v, want %v", record.(Agent).UpdatedAt, want)
	}
	for given, want := range map[string]string{
		`"\u00a0 Ada@Example.COM\n"`: "ada@example.com",
		`" Cron Job "`:               "Cron Job",
		`"É@EXAMPLE.com"`:            "é@example.com",
	} {
		record, err := read([]byte(with(runLine, "initiator_identifier", given)))
		if err != nil {
			t.Fatal(err)
		}
		if got := record.(Run).InitiatorIdentifier; got == nil || *got != want {
			t.Errorf("%s became %v, want %q", given, got, want)
		}
	}
	record, err = read([]byte(with(runLine, "initiator_identifier", `" \t"`)))
	if err != nil || record.(Run).InitiatorIdentifier != nil {
		t.Errorf("a blank identifier became %v, %v, want null", record.(Run).InitiatorIdentifier, err)
	}
	if kind := record.(Run).RunKind; kind != "agent" {
		t.Errorf("the kind is %q by default, want agent", kind)
	}
}

// A fixed rejects file can be fed back: its lines are read as the records in them.
func TestReadsRejects(t *testing.T) {
	for name, record := range map[string]string{"an object": agentLine,
		"text that was no JSON": fmt.Sprintf("%q", agentLine)} {
		got, err := read([]byte(`{"source":"a.ndjson","line":7,"field":"slug","error":"is wrong","record":` + record + `}`))
		if want, _ := read([]byte(agentLine)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	var rejected *Error
	if _, err := read([]byte(`{"error":"is wrong","record":{"record":"agent","name":7}}`)); !errors.As(err, &rejected) ||
		rejected.Field != "name" {
		t.Errorf("a reject that was not fixed: %v", err)
	}
}

// A fixed reject of a CSV file is read as CSV, and rejects of rejects are read as what is inside.
func TestReadsRejectsOfCSV(t *testing.T) {
	const how = `"kind":"agent","delimiter":";","null":"\\N","columns":["colour"," ` +
		`organization_id","agent_id","slug","name","updated_at","record"]`
	const row = `red;acme;0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10;\\N;\"a;\nb\";2026-01-31 09:30:00+00;agent`
	want, err := read([]byte(with(with(agentLine, "name", `"a;\nb"`), "updated_at", `"2026-01-31T09:30:00Z"`)))
	if err != nil {
		t.Fatal(err)
	}
	line := `{"source":"a.csv","line":7,"field":"","error":"is wrong","record":{"csv":{"text":"` + row + `",` + how + `}}}`
	for _, line := range []string{line, `{"source":"r","line":1,"error":"again","record":{"source":"q","line":1,` +
		`"error":"again","record":` + line + `}}`} {
		if got, err := read([]byte(line)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
	for fault, line := range map[string]string{
		"wrong number of fields": strings.Replace(line, "red;", "", 1),
		"more than one record":   strings.Replace(line, ";agent\"", ";agent\\n"+row+"\"", 1),
		"must be agent, the":     strings.Replace(line, ";agent\"", ";run\"", 1),
		"the header lacks":       strings.Replace(line, `"name",`, `"title",`, 1),
		"must be agent, run or":  strings.Replace(line, `"kind":"agent"`, `"kind":"person"`, 1),
		"must be what a rejects": strings.Replace(line, `"delimiter":";"`, `"delimiter":7`, 1),
		"is not valid CSV":       strings.Replace(line, `"delimiter":";"`, `"delimiter":"\""`, 1),
	} {
		if _, err := read([]byte(line)); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("got %v, want %s", err, fault)
		}
	}
}

// Each byte of rejects in rejects is read once, so that what a line costs grows as its length. The bytes that are
// allocated say so without a clock: of twice as many levels they would be four times as many.
func TestReadsNestedRejectsOnce(t *testing.T) {
	want, err := read([]byte(agentLine))
	if err != nil {
		t.Fatal(err)
	}
	allocated := func(levels int) uint64 {
		line := strings.Repeat(`{"error":"","record":`, levels) + agentLine + strings.Repeat("}", levels)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := read([]byte(line))
		runtime.ReadMemStats(&after)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%d levels: %+v, %v", levels, got, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(2000), allocated(4000); many > 3*few {
		t.Errorf("2000 levels allocate %d bytes, 4000 levels %d", few, many)
	}
}

// Unknown fields are left out with --ignore-unknown, and nothing else becomes right.
func TestReadKnownJSON(t *testing.T) {
	plain, _ := read([]byte(agentLine))
	for _, line := range []string{
		with(agentLine, "colour", `"red"`), with(agentLine, "colour", `{"a":[1,null]}`), with(agentLine, "error", `"red"`),
		with(agentLine, "csv", "7"), with(with(agentLine, "error", `"x"`), "csv", `"y"`),
		with(with(with(agentLine, "error", "null"), "csv", `{"kind":"run"}`), "source", `"z"`), agentLine,
	} {
		var raw Raw
		err := ReadKnownJSON([]byte(line), &raw)
		if got, ruleErr := NewNormalizer().Agent(&raw); err != nil || ruleErr != nil || !reflect.DeepEqual(got, plain) {
			t.Errorf("%s: %+v, %v, %v", line, got, err, ruleErr)
		}
		if err := ReadJSON([]byte(line), &raw); (err == nil) != (line == agentLine) {
			t.Errorf("ReadJSON of %s: %v", line, err)
		}
	}
	for _, line := range []string{with(agentLine, "name", "7"), with(agentLine, "record", ""),
		strings.TrimSuffix(agentLine, "}") + `,"x":1,"x":2}`} {
		if err := ReadKnownJSON([]byte(line), new(Raw)); err == nil {
			t.Errorf("%s: no error", line)
		}
	}
}

// What is written for a reject is what was read.
func TestAppendJSON(t *testing.T) {
	for _, line := range []string{agentLine, runLine, attrLine, with(agentLine, "name", `"a \"b\" \u0000 é"`)} {
		var raw, again Raw
		if err := ReadJSON([]byte(line), &raw); err != nil {
			t.Fatal(err)
		}
		if err := ReadJSON(raw.AppendJSON(nil), &again); err != nil || !reflect.DeepEqual(raw, again) {
			t.Errorf("%s became %s, %v", line, raw.AppendJSON(nil), err)
		}
	}
}
