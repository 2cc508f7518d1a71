package olap_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
)

var updateWalk = flag.Bool("update", false, "write the walk of deploy/development.md again")

const (
	walkVariable = "RUNLENS_TEST_WALK" // which walk the test's own binary takes
	walkBegin    = "<!-- walk: go test ./olap -run TestWalk -update -->\n"
	walkEnd      = "<!-- end of the walk -->\n"
)

// A walk is a question whose way through the files of Engine.Run is traced.
type walk struct {
	name, title, body string
	options           plan.Options
}

var walks = []walk{
	{"simple", "A simple question (totals of a month of a small organization)",
		`{"model":"agent_runs","metrics":["run_count"],` + january31, plan.Options{}},
	{"large", "A large organization's first page (runs by day, from the rollup)",
		`{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"limit":1,` + january31, asLarge},
}

// The walk of one query in deploy/development.md names the files that a question passes through: those of which more
// statements are executed with it than without it. A test binary of its own, which counts them, prepares the same store
// both times. With -short it is left out: it compiles the engine once more, to count.
func TestWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("the walk is traced without -short")
	}
	if named := os.Getenv(walkVariable); named != "" {
		takeWalk(t, named)
		return
	}
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	binary := filepath.Join(dir, "olap.test")
	run("go", "test", "-c", "-ldflags=-w", "-o", binary, "-covermode=atomic", "-coverpkg=./...,../schema", ".")
	counts := func(named string) map[string]int {
		t.Helper()
		t.Setenv(walkVariable, named)
		profile := filepath.Join(dir, "profile")
		run(binary, "-test.run=^TestWalk$", "-test.coverprofile="+profile)
		content, err := os.ReadFile(profile)
		if err != nil {
			t.Fatal(err)
		}
		return executions(string(content))
	}
	var text strings.Builder
	without := counts("without")
	for _, w := range walks {
		describeWalk(&text, w.title, moreExecuted(counts(w.name), without))
	}
	page, err := os.ReadFile("../deploy/development.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := bytes.Cut(page, []byte(walkBegin))
	old, after, ended := bytes.Cut(rest, []byte(walkEnd))
	switch {
	case !found || !ended:
		t.Fatal("deploy/development.md has no walk")
	case string(old) == text.String():
	case *updateWalk:
		content := slices.Concat(before, []byte(walkBegin), []byte(text.String()), []byte(walkEnd), after)
		if err := os.WriteFile("../deploy/development.md", content, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("deploy/development.md has another walk; go test ./olap -run TestWalk -update writes this one:\n%s",
			text.String())
	}
}

// takeWalk prepares a store and an engine that has read it in the background, as servers do, and asks the question,
// if there is one of the name.
func takeWalk(t *testing.T, name string) {
	conn := olaptest.OpenStore(t).Conn()
	var records olaptest.Records
	for day := 1; day <= 3; day++ {
		records.Runs = append(records.Runs, runOn(day, day, "COMPLETED"))
	}
	olaptest.Load(t, conn, records)
	refreshed(t, rollup.New(conn, quiet, 0))
	engine := newEngine(conn)
	engine.FollowOnce(t.Context())
	for _, w := range walks {
		asked, err := request(acme, []byte(w.body))
		if err != nil {
			t.Fatal(err)
		}
		if w.name != name {
			continue
		}
		engine.Use(w.options)
		_, err = engine.Run(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
	}
}

var executedLine = regexp.MustCompile(`(?m)^github\.com/runlens/runlens/(\S+:\S+) \d+ (\d+)$`)

// executions are how often each block of statements was executed.
func executions(profile string) map[string]int {
	blocks := map[string]int{}
	for _, line := range executedLine.FindAllStringSubmatch(profile, -1) {
		n, _ := strconv.Atoi(line[2])
		blocks[line[1]] += n
	}
	return blocks
}

// moreExecuted are the files of each package of which a block was executed more often.
func moreExecuted(with, without map[string]int) map[string][]string {
	files := map[string][]string{}
	for block, n := range with {
		path, _, _ := strings.Cut(block, ":")
		folder, file := filepath.Dir(path), filepath.Base(path)
		if n > without[block] && !slices.Contains(files[folder], file) {
			files[folder] = append(files[folder], file)
		}
	}
	return files
}

// notEngine are packages that the engine uses as others do: vocabulary, and what a question is made of.
var notEngine = []string{"schema", "olap/catalog", "olap/query", "olap/daterange", "olap/cost", "olap/elapsed",
	"olap/failure", "olap/trace"}

// describeWalk leaves out the connection, which looks after its engine meanwhile.
func describeWalk(out *strings.Builder, title string, files map[string][]string) {
	delete(files, "olap/clickhouse")
	engine, all := 0, 0
	for folder, names := range files {
		all += len(names)
		if !slices.Contains(notEngine, folder) {
			engine += len(names)
		}
	}
	fmt.Fprintf(out, "%s\npasses %d files from `Engine.Run` on, %d of them the engine's:\n\n", title, all, engine)
	for _, folder := range slices.Sorted(maps.Keys(files)) {
		names := files[folder]
		slices.Sort(names)
		fmt.Fprintf(out, "* `%s`: %s\n", folder, strings.Join(names, ", "))
	}
	out.WriteString("\n")
}
