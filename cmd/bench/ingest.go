package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/schema"
)

const (
	ingestRows       = 1_000_000 // at scale 1
	maxIngestMiB     = 256
	memoryPollPeriod = 20 * time.Millisecond
)

// A fileFormat is a format of files that both runlens and ClickHouse read.
type fileFormat struct {
	name, extension, clickhouse string
	columns                     []string // of the written file, the field record included where the format needs it
	flags                       []string // of runlens ingest
}

var fileFormats = []fileFormat{
	{"NDJSON", "ndjson", "JSONEachRow", append([]string{"record"}, schema.RunColumns...), nil},
	{"CSV", "csv", "CSVWithNames", schema.RunColumns, []string{"--record", "run"}},
	{"Parquet", "parquet", "Parquet", schema.RunColumns, []string{"--record", "run"}},
}

// formatSettings make ClickHouse write and read files as people exchange them: instants in ISO 8601, an empty CSV cell
// for null.
const formatSettings = "date_time_output_format = 'iso', date_time_input_format = 'best_effort', " +
	"format_csv_null_representation = '', " +
	"input_format_skip_unknown_fields = 1, max_partitions_per_insert_block = 0"

// measureIngest loads the same file with runlens ingest and with ClickHouse's own INSERT FROM INFILE, each
// time into a new store.
func (b *bench) measureIngest(ctx context.Context) error {
	world := newWorld(b.Scale, b.Until)
	// Files are large and ClickHouse keeps nothing of them, so that the engine of this run only writes them.
	rows := uint64(max(1000, math.Round(ingestRows*b.Scale)))
	g := generator{class{"export", 1, rows}, world}
	createRuns, err := b.createRuns(ctx)
	if err != nil {
		return err
	}
	for _, f := range fileFormats {
		file := filepath.Join(b.folder.Dir, "runs."+f.extension)
		if err := b.writeFile(ctx, g, f, file); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
		if err := b.compareIngest(ctx, f, file, rows, createRuns); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		os.Remove(file)
	}
	return nil
}

// compareIngest alternates the two and reports rates and memory. Both must have stored the same.
func (b *bench) compareIngest(ctx context.Context, f fileFormat, file string, rows uint64, createRuns string) error {
	var ours, reference, resident []float64
	name := fmt.Sprintf("%s, %d runs", f.name, rows)
	for range b.Rounds {
		in, err := b.runlensIngest(ctx, f, file)
		if err != nil {
			return fmt.Errorf("runlens ingest: %w", err)
		}
		rate, loaded, err := b.infile(ctx, f, file, rows, createRuns)
		if err != nil {
			return fmt.Errorf("INSERT FROM INFILE: %w", err)
		}
		ours, resident, reference = append(ours, in.perSecond), append(resident, in.mib), append(reference, rate)
		b.report.check("ingest of "+name, answer{{in.loaded}}, answer{{loaded}})
	}
	r := result{
		Scenario:  "ingest",
		Name:      name,
		Unit:      "rows/s",
		Ours:      statsOf(ours),
		Against:   "INFILE",
		Reference: statsOf(reference),
		Note:      "(both without start-up)",
	}
	r.Measured = r.Ours.Median / r.Reference.Median
	b.report.add(r.goal("at least 1.00", r.Measured >= 1))
	m := result{Scenario: "ingest", Name: name + ", resident", Unit: "MiB", Ours: statsOf(resident)}
	m.Measured = m.Ours.P95
	if m.Measured > 0 {
		b.report.add(m.goal(fmt.Sprintf("under %d MiB", maxIngestMiB), m.Measured < maxIngestMiB))
	}
	return nil
}

// An ingested is what one run of `runlens ingest` was like.
type ingested struct {
	perSecond float64 // as it reports itself, without the start of the engine
	mib       float64 // its peak of resident memory, without the engine's; 0 where the system does not say
	loaded    string  // the table's fingerprint
}

// runlensIngest loads a file with `runlens ingest` into a new store.
func (b *bench) runlensIngest(ctx context.Context, f fileFormat, file string) (ingested, error) {
	dir := filepath.Join(b.folder.Dir, "ingest")
	store, err := b.openStore(ctx, dir) // whose engine the command joins
	if err != nil {
		return ingested{}, err
	}
	defer closeStore(store, dir)
	command := b.product(dir).Command(ctx, append([]string{"ingest", "--json", file}, f.flags...)...)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	peak, err := runWatched(command)
	if err != nil {
		return ingested{}, fmt.Errorf("%w: %s", err, log.Bytes())
	}
	var summary struct {
		PerSecond float64 `json:"records_per_second"`
	}
	if err := json.Unmarshal(out.Bytes(), &summary); err != nil {
		return ingested{}, err
	}
	in := ingested{perSecond: summary.PerSecond, mib: float64(peak) / (1 << 20)}
	return in, store.Conn().QueryRow(ctx, fingerprint).Scan(&in.loaded)
}

// runWatched runs a command and returns the most memory it had resident.
func runWatched(command *exec.Cmd) (peak int64, err error) {
	if err := command.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	tick := time.NewTicker(memoryPollPeriod)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-tick.C:
			if bytes, known := process.PeakResident(command.Process.Pid); known {
				peak = max(peak, bytes)
			}
		}
	}
}

// createRuns is the statement that makes the table of runs as the migrations left it, without its database.
func (b *bench) createRuns(ctx context.Context) (string, error) {
	db, err := b.store.DB()
	if err != nil {
		return "", err
	}
	defer db.Close()
	if err := schema.Own.Up(ctx, db); err != nil {
		return "", err
	}
	var statement string
	err = b.store.Conn().QueryRow(ctx, "SHOW CREATE TABLE "+schema.TableRuns).Scan(&statement)
	return strings.Replace(statement, " "+b.store.Database()+".", " ", 1), err
}

// writeFile writes the runs in the order of time, as an export would have them.
func (b *bench) writeFile(ctx context.Context, g generator, f fileFormat, file string) error {
	set := rowSet{columns: f.columns, fields: func(o, i string) map[string]string {
		fields := g.run(firstVersion, o, i)
		fields["record"] = "'run'"
		for _, id := range []string{"run_id", "agent_id", "parent_run_id"} {
			fields[id] = "CAST(" + fields[id] + ", 'Nullable(String)')"
		}
		return fields
	}}
	named := make([]string, len(f.columns))
	for i, column := range f.columns {
		named[i] = "v_" + column + " AS " + column
	}
	sql := fmt.Sprintf("SELECT %s FROM (%s) FORMAT %s SETTINGS %s, max_threads = 1", strings.Join(named, ", "),
		g.selectRows(set, 0, g.rows()), f.clickhouse, formatSettings)
	return b.download(ctx, sql, file)
}

// download runs a statement over ClickHouse's HTTP interface and keeps its output as it comes.
func (b *bench) download(ctx context.Context, sql, file string) error {
	engine, err := b.engineProcess()
	if err != nil {
		return err
	}
	password, err := b.enginePassword()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+engine.Addr+"/", strings.NewReader(sql))
	if err != nil {
		return err
	}
	request.SetBasicAuth(engineUser, password)
	// an open connection delays the engine's end
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return err
}
