package httpapi_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// deploy/README.md has every field of a request's log line, and no other.
func TestLogFieldsAreDocumented(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, table, _ := strings.Cut(read("../deploy/README.md"), "| field | meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if strings.Contains(cells[1], "`strategy`") {
			cells[1] += cells[2] // a group, whose fields the row names
		}
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[1], -1) {
			documented[name[1]] = true
		}
	}
	logged := map[string]bool{"trace_id": true} // which the handler of every line adds (cmd/internal/logs)
	for _, name := range regexp.MustCompile(`slog\.[A-Z]\w+\("(\w+)"`).FindAllStringSubmatch(read("observe.go"), -1) {
		logged[name[1]] = true
		if !documented[name[1]] {
			t.Errorf("deploy/README.md lacks the log field %s", name[1])
		}
	}
	for name := range documented {
		if !logged[name] {
			t.Errorf("deploy/README.md has the log field %s, which nobody logs", name)
		}
	}
}
