package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Every command that a page tells to type is one that runlens has, with these flags.
func TestCommandsOnPages(t *testing.T) {
	block := regexp.MustCompile("(?ms)^ *```(?:sh|cron)\n(.*?)^ *```$")
	inline := regexp.MustCompile("`((?:bin/)?runlens [^`]+)`")
	ours := regexp.MustCompile(`(?m)(?:^|[|(=] ?|\* |&& |[A-Z_]+=\S+ )(?:bin/)?runlens (.*)$`)
	incomplete := regexp.MustCompile(`missing|^expected |EOL`)
	parser, typed := testParser(t), 0
	for _, page := range pages(t) {
		text := strings.ReplaceAll(read(t, "../..", page), `\|`, "|")
		var lines []string
		for _, code := range block.FindAllStringSubmatch(text, -1) {
			lines = append(lines, strings.Split(strings.ReplaceAll(code[1], "\\\n", ""), "\n")...)
		}
		for _, code := range inline.FindAllStringSubmatch(text, -1) {
			lines = append(lines, strings.Join(strings.Fields(code[1]), " "))
		}
		for _, line := range lines {
			for _, command := range ours.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
				typed++
				_, err := parser.Parse(shellWords(command[1]))
				// A sentence may name a command without what it needs.
				if err != nil && !incomplete.MatchString(err.Error()) {
					t.Errorf("%s: %s: %v", page, line, err)
				}
			}
		}
	}
	if typed < 150 {
		t.Errorf("only %d commands were found", typed)
	}
}

// pages are all pages of the repository, by their paths in it.
func pages(t *testing.T) (names []string) {
	t.Helper()
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err == nil && entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "data"):
			return fs.SkipDir
		case path.Ext(name) == ".md":
			names = append(names, name)
		}
		return err
	})
	must(t, err)
	return names
}

// shellWords are the words of a command up to a pipe, a redirection or a comment, without their quotes. What only a
// page has is left out: ellipses, and kinds that stand for one.
func shellWords(line string) (words []string) {
	line = regexp.MustCompile(`\d?>`).ReplaceAllString(line, ">")
	word := regexp.MustCompile(`^\s*((?:"[^"]*"|'[^']*'|[^\s"'|<>#&;)])+)`)
	for {
		match := word.FindStringSubmatch(line)
		if match == nil {
			return words
		}
		line = line[len(match[0]):]
		switch text := strings.NewReplacer(`"`, "", "'", "").Replace(match[1]); text {
		case "…":
		case "KIND":
			words = append(words, "run")
		default:
			words = append(words, text)
		}
	}
}

// deploy/README.md lists every variable that a command reads.
func TestVariablesOnPage(t *testing.T) {
	page := read(t, "../../deploy/README.md")
	for name := range variables(t) {
		secret := "`" + strings.TrimSuffix(name, "_FILE") + "`, `…_FILE`"
		if strings.HasPrefix(name, "RUNLENS_") && !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, secret) {
			t.Errorf("deploy/README.md lacks %s", name)
		}
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
