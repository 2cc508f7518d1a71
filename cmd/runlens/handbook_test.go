package main

import (
	"regexp"
	"strings"
	"testing"
)

// Every command that a page for operators tells to type is one that runlens has, with these flags.
func TestCommandsForOperators(t *testing.T) {
	block := regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")
	incomplete := regexp.MustCompile(`missing|^expected |EOL`)
	typed := 0
	for _, page := range []string{"handbook.md", "backup.md", "README.md", "upgrades.md", "prometheus/runbook.md"} {
		text := read(t, "../../deploy", page)
		var lines []string
		for _, code := range block.FindAllStringSubmatch(text, -1) {
			lines = append(lines, strings.Split(code[1], "\n")...)
		}
		for _, code := range regexp.MustCompile("`(runlens [^`]+)`").FindAllStringSubmatch(text, -1) {
			lines = append(lines, strings.Join(strings.Fields(code[1]), " "))
		}
		for _, line := range lines {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			if args, ours := strings.CutPrefix(line, "runlens "); ours {
				typed++
				parser, err := newParser(&cli{})
				if err != nil {
					t.Fatal(err)
				}
				_, err = parser.Parse(strings.Fields(strings.ReplaceAll(args, "KIND", "run")))
				// A sentence may name a command without what it needs.
				if err != nil && !incomplete.MatchString(err.Error()) {
					t.Errorf("%s: %s: %v", page, line, err)
				}
			}
		}
	}
	if typed < 20 {
		t.Errorf("only %d commands were found", typed)
	}
}

// The handbook says of every limit what it does, and has no other.
func TestLimitsInHandbook(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "../../deploy/handbook.md"), "| limit | when | what to do |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	explained, limits := map[string]bool{}, map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` ").FindAllStringSubmatch(table, -1) {
		explained[row[1]] = true
	}
	for _, limit := range regexp.MustCompile(`(?m)^\tlimit\w+ += "(\w+)"$`).FindAllStringSubmatch(
		read(t, "../../http/errors.go"), -1) {
		if limits[limit[1]] = true; !explained[limit[1]] {
			t.Errorf("the handbook lacks the limit %s", limit[1])
		}
	}
	if len(explained) != len(limits) || len(limits) < 6 {
		t.Errorf("the handbook has the limits %v, the server %v", explained, limits)
	}
}

// The checklist of the first hour has every check that the doctor makes of a store and a source.
func TestChecksInHandbook(t *testing.T) {
	handbook := read(t, "../../deploy/handbook.md")
	made := regexp.MustCompile(`(?m)^\t\{"([a-z ]+)", |(?:Check: |\b(?:add|warn)\()"([a-z ]+)"`)
	checks := 0
	for _, file := range []string{"olap/doctor/doctor.go", "cmd/runlens/doctor.go", "cmd/runlens/redis.go",
		"ingest/source/postgres/examine.go"} {
		for _, check := range made.FindAllStringSubmatch(read(t, "../../"+file), -1) {
			checks++
			if name := check[1] + check[2]; !strings.Contains(handbook, "`"+name+"`") {
				t.Errorf("the handbook lacks the check %s of %s", name, file)
			}
		}
	}
	if checks < 25 {
		t.Errorf("only %d checks were found", checks)
	}
}
