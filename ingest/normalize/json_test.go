package normalize

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	agentLine = `{"record":"agent","organization_id":"acme","agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","name":"Support","updated_at":"2026-01-31T09:30:00.1239+02:00"}`
	runLine   = `{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11","agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED","created_at":"2026-01-31T09:30:00Z","updated_at":"2026-01-31T09:31:00Z"}`
	attrLine  = `{"record":"attribution","organization_id":"acme","attribution_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b12","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11","agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","user_identifier":"ada@example.com","activity_type":"initiated","run_initiation_type":"human","source":"web","occurred_at":"2026-01-31T09:30:00Z"}`
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
		"agent":                      agentLine,
		"run":                        runLine,
		"attribution":                attrLine,
		"agent with everything":      with(with(agentLine, "slug", quoted(200, "é")), "deleted_at", `"2026-01-31T09:30:00Z"`),
		"nulls where they may be":    with(with(with(with(runLine, "parent_run_id", "null"), "initiator_identifier", "null"), "initiator_name", "null"), "initiator_type", "null"),
		"empty name":                 with(agentLine, "name", `""`),
		"name of 500 characters":     with(agentLine, "name", quoted(500, "😀")),
		"organization of 64":         with(agentLine, "organization_id", quoted(64, "a")),
		"organization's characters":  with(agentLine, "organization_id", `"aZ0._:-"`),
		"UUID in capitals":           with(agentLine, "agent_id", `"0B7E4D2C-9F3A-4C61-8A55-2F1D6C9E7B10"`),
		"first instant of the store": with(runLine, "created_at", `"1900-01-01T00:00:00Z"`),
		"last instant of the store":  with(runLine, "created_at", `"2299-12-31T23:59:59.9999Z"`),
		"supporting run":             with(with(runLine, "kind", `"sub_agent"`), "parent_run_id", `"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b13"`),
		"initiator of any form":      with(runLine, "initiator_identifier", `"cron job 7"`),
		"initiator of 320":           with(runLine, "initiator_identifier", quoted(320, "😀")),
		"phone number":               with(attrLine, "user_identifier", `"+15550100"`),
		"longest phone number":       with(attrLine, "user_identifier", `"+123456789012345"`),
		"source of 64":               with(attrLine, "source", quoted(64, "é")),
		"address with two @":         with(attrLine, "user_identifier", `"\"a@b\"@example.com"`),
	} {
		if _, err := JSON([]byte(line)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, line)
		}
	}
}

// Contract 3, a case for each rule that rejects, with the field it names.
func TestRejects(t *testing.T) {
	for _, c := range []struct{ name, line, field string }{
		{"not JSON", `{"record"`, ""},
		{"not an object", `[]`, ""},
		{"data behind the object", agentLine + "{}", ""},
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
		{"after the store", with(runLine, "created_at", `"2300-01-01T00:00:00Z"`), "created_at"},
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
		{"address of 321 octets", with(attrLine, "user_identifier", `"`+strings.Repeat("a", 309)+`@example.com"`), "user_identifier"},
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
		_, err := JSON([]byte(c.line))
		var rejected *Error
		if !errors.As(err, &rejected) {
			t.Errorf("%s: accepted\n%s", c.name, c.line)
		} else if rejected.Field != c.field || rejected.Reason == "" {
			t.Errorf("%s: rejected for %q (%s), want %q", c.name, rejected.Field, rejected.Reason, c.field)
		} else if strings.Contains(rejected.Reason, "Go ") || strings.Contains(rejected.Reason, "normalize.") {
			t.Errorf("%s: the reason tells of Go: %s", c.name, rejected.Reason)
		}
	}
}

func TestNormalizes(t *testing.T) {
	record, err := JSON([]byte(agentLine))
	if err != nil {
		t.Fatal(err)
	}
	// Cut, not rounded, and in UTC.
	if want := time.Date(2026, 1, 31, 7, 30, 0, 123e6, time.UTC); !record.(*Agent).UpdatedAt.Equal(want) {
		t.Errorf("updated_at %v, want %v", record.(*Agent).UpdatedAt, want)
	}
	for given, want := range map[string]string{
		`"\u00a0 Ada@Example.COM\n"`: "ada@example.com",
		`" Cron Job "`:               "Cron Job",
		`"É@EXAMPLE.com"`:            "é@example.com",
	} {
		record, err := JSON([]byte(with(runLine, "initiator_identifier", given)))
		if err != nil {
			t.Fatal(err)
		}
		if got := record.(*Run).InitiatorIdentifier; got == nil || *got != want {
			t.Errorf("%s became %v, want %q", given, got, want)
		}
	}
	record, err = JSON([]byte(with(runLine, "initiator_identifier", `" \t"`)))
	if err != nil || record.(*Run).InitiatorIdentifier != nil {
		t.Errorf("a blank identifier became %v, %v, want null", record.(*Run).InitiatorIdentifier, err)
	}
	if kind := record.(*Run).RunKind; kind != "agent" {
		t.Errorf("the kind is %q by default, want agent", kind)
	}
}

func FuzzJSON(f *testing.F) {
	for _, line := range []string{agentLine, runLine, attrLine, `{}`, `null`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		record, err := JSON(line)
		var rejected *Error
		if err != nil && !errors.As(err, &rejected) || err == nil && record == nil {
			t.Fatalf("%q: %v, %v", line, record, err)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	for b.Loop() {
		if _, err := JSON([]byte(attrLine)); err != nil {
			b.Fatal(err)
		}
	}
}
