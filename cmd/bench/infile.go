package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/runlens/runlens/schema"
)

// infileVariable is set for one kind of child process alone: an infileTask in JSON.
const infileVariable = "RUNLENS_BENCH_INFILE"

// An infileTask makes a child process of this program a `clickhouse local` that runs statements. The embedded
// engine itself must not read files.
type infileTask struct {
	Library    string
	Dir        string
	Statements string
}

// fingerprint reports whether two tables hold the same rows, but for when those were stored.
const fingerprint = "SELECT concat(toString(count()), ' ', hex(sum(cityHash64(toString(tuple(*)))))) FROM (SELECT * " +
	"EXCEPT (first_stored_at, last_stored_at) FROM runs)"

// infile loads a file with ClickHouse's own INSERT FROM INFILE into a new store and returns how many rows a second
// that statement alone took, by ClickHouse's clock, and the table's fingerprint.
func (b *bench) infile(
	ctx context.Context, f fileFormat, file string, rows uint64, createRuns string,
) (perSecond float64, loaded string, err error) {
	const clock = "SELECT now64(6)"
	insert := fmt.Sprintf("INSERT INTO runs (%s) FROM INFILE '%s' SETTINGS %s FORMAT %s",
		strings.Join(schema.RunColumns, ", "), file, formatSettings, f.clickhouse)
	printed, err := b.runInfile(ctx, strings.Join([]string{createRuns, clock, insert, clock, fingerprint}, ";\n"))
	if err != nil {
		return 0, "", err
	}
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	if len(lines) != 3 {
		return 0, "", fmt.Errorf("printed %q", printed)
	}
	var at [2]time.Time
	for i := range at {
		if at[i], err = time.Parse("2006-01-02 15:04:05.999999", lines[i]); err != nil {
			return 0, "", err
		}
	}
	return float64(rows) / at[1].Sub(at[0]).Seconds(), lines[2], nil
}

// runInfile runs statements in a new `clickhouse local` of its own and returns what they print.
func (b *bench) runInfile(ctx context.Context, statements string) (printed string, err error) {
	dir, err := os.MkdirTemp(b.folder.Dir, "infile-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	task, err := json.Marshal(infileTask{b.EngineLib, dir, statements})
	if err != nil {
		return "", err
	}
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, executable)
	command.Env = append(os.Environ(), infileVariable+"="+string(task), "TZ=UTC")
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, log.Bytes())
	}
	return out.String(), nil
}

// runInfileChild does the task of this process, if it is such a child, and ends it.
func runInfileChild() {
	text, ok := os.LookupEnv(infileVariable)
	if !ok {
		return
	}
	var task infileTask
	err := json.Unmarshal([]byte(text), &task)
	if err == nil {
		err = task.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run calls the engine library's entry point, which behaves as the command `clickhouse local`.
func (t infileTask) run() error {
	handle, err := purego.Dlopen(t.Library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	var call func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	var output, failure func(result unsafe.Pointer) string
	purego.RegisterLibFunc(&call, handle, "chdb_query_cmdline")
	purego.RegisterLibFunc(&output, handle, "chdb_result_buffer")
	purego.RegisterLibFunc(&failure, handle, "chdb_result_error")

	var argv []*byte
	for _, arg := range []string{"clickhouse", "--path", t.Dir, "--log-level=error", "--query", t.Statements} {
		argv = append(argv, &append([]byte(arg), 0)[0])
	}
	argc := int32(len(argv))
	argv = append(argv, nil)
	result := call(argc, unsafe.Pointer(&argv[0]))
	runtime.KeepAlive(argv)
	if result == nil {
		return fmt.Errorf("the engine returned nothing")
	}
	if message := failure(result); message != "" {
		return fmt.Errorf("%s", message)
	}
	fmt.Print(output(result))
	return nil
}
