// Command soak proves over a long time what no test can prove in seconds. It runs the built binary as a user would,
// attacks and loads it, and prints one table: what was checked, what was seen, and the bound. It fails when a bound
// is missed. Its parts:
//
//   - tests: all tests, with every case of those that are only sampled by make test.
//   - ranges: random legal queries over years 1 to 9999 and every zone.
//   - bodies: thousands of connections with the largest legal request, stalled or trickling.
//   - mixed: questions, refusals, ingest runs, key changes and a killed engine at the same time.
//   - smuggling: crafted requests through keep-alive proxies and directly, while another customer sends queries.
//   - kills: the engine is killed before and after chosen system calls of ingest, worker, refresh and purge.
//   - push: clients push records while the server and the engine are killed; also how quickly, and in how much memory.
//   - oracle: random changes, purges and kills; the answers of two servers are held against an oracle, by strategy.
//   - storm: random histories of two servers with held, delayed and repeated statements, and jumps of the clock.
//   - sources: workers copy a primary and a late standby while everything goes on there that made copies wrong.
//   - siege: attacks on the API, the engine's port and the admin address, beside honest tenants.
//   - narrowed: keys that see parts of one organization ask two servers the same; no answer has a row beyond them.
//   - upgrade: servers of the release before are exchanged for those of this one, and back, under load.
//   - moves: organizations are moved between cells under load, and one of all that runs is killed at every step.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/clickhouse"
)

// A command is the command line.
type command struct {
	Only         harness.Only  `placeholder:"NAME,…" help:"Only these parts, of those below. Default: all."`
	RangesFor    time.Duration `default:"10m" help:"Length of the part ranges (${default})."`
	Connections  int           `default:"2000" help:"Connections at once in the part bodies (${default})."`
	HoldFor      time.Duration `default:"20s" help:"How long slow connections are held (${default})."`
	MemoryBound  int64         `default:"512" placeholder:"MIB" help:"Most memory of a server (${default})."`
	MixedFor     time.Duration `default:"30m" help:"Length of the part mixed (${default})."`
	KillEvery    time.Duration `default:"1m" help:"How often the engine is killed in the part mixed (${default})."`
	Tries        int           `default:"1000" help:"Attacks on each way in the part smuggling (${default})."`
	Kills        int           `default:"500" help:"Kills of the engine in the part kills (${default})."`
	KillsOf      []string      `placeholder:"NAME,…" help:"Kills of these: ingest, worker, refresh, purge."`
	MoveKills    int           `default:"300" placeholder:"N" help:"Kills in the part moves (${default})."`
	PushFor      time.Duration `default:"20s" help:"How long the part push measures (${default})."`
	PushKills    int           `default:"200" placeholder:"N" help:"Kills in the part push (${default})."`
	Answers      int           `default:"5000" help:"Answers of every strategy in the part oracle (${default})."`
	OracleRuns   int           `default:"2000000" placeholder:"N" help:"Runs of the largest organization (${default})."`
	OracleFor    time.Duration `default:"60m" help:"Longest time for queries in the part oracle (${default})."`
	Histories    int           `default:"2000" placeholder:"N" help:"Histories in the part storm (${default})."`
	SiegeFor     time.Duration `default:"30m" help:"Length of the part siege (${default})."`
	SiegeOf      []string      `placeholder:"NAME,…" help:"Attacks of these in the part siege: ${attacks}."`
	SourcesFor   time.Duration `default:"6m" help:"How long rows change in the part sources (${default})."`
	SourceRuns   int           `default:"300000" placeholder:"N" help:"Runs of the part sources (${default})."`
	UpgradeFor   time.Duration `default:"1m" help:"Length of the part upgrade, without building (${default})."`
	Narrowed     int           `default:"100000" placeholder:"N" help:"Answers of the part narrowed (${default})."`
	NarrowedRuns int           `default:"450000" placeholder:"N" help:"Runs of the part narrowed (${default})."`
	Before       string        `placeholder:"COMMIT" help:"The release before. Default: without the newest migration."`
	Serve        []string      `sep:"none" placeholder:"FLAG" help:"A further flag of every server; may be repeated."`
	Seed         uint64        `help:"Draws the same questions again. Default: another one each time."`
	Dir          string        `default:".soak" placeholder:"DIR" help:"Where a run keeps its data (${default})."`
	Runlens      string        `default:"bin/runlens" placeholder:"FILE" help:"The binary to prove (${default})."`
	EngineLib    string        `env:"RUNLENS_ENGINE_LIB" placeholder:"FILE" help:"The embedded engine's library."`
}

func (command) Help() string {
	return `Run it from the top of the repository, on a quiet machine. If a bound is missed, the servers' logs stay.
Parts: tests, ranges, bodies, mixed, smuggling, kills, push, oracle, storm, sources, siege, narrowed, upgrade, moves.
Only as root does siege try what another user can read.

Example:
  make soak
  go run ./cmd/soak --only smuggling --tries 100
  go run ./cmd/soak --only kills --kills-of refresh --kills 50
  go run ./cmd/soak --only push --push-kills 20
  go run ./cmd/soak --only oracle --answers 300 --oracle-for 10m
  go run ./cmd/soak --only storm --histories 100
  go run ./cmd/soak --only sources --sources-for 3m
  go run ./cmd/soak --only siege --siege-for 2m
  go run ./cmd/soak --only narrowed --narrowed 5000 --narrowed-runs 30000
  go run ./cmd/soak --only upgrade --before v1.0.0
  go run ./cmd/soak --only moves --move-kills 20
  go run ./cmd/soak --only bodies --serve=--max-body-bytes=1048576`
}

func main() {
	if slices.Equal(os.Args[1:], []string{strangerCommand}) {
		if err := tryAsStranger(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "stranger:", err)
			os.Exit(1)
		}
		return
	}
	var c command
	kong.Parse(&c, kong.Name("soak"),
		kong.Vars{"attacks": attackNames()},
		kong.Description("Proves over a long time that the built binary holds its promises."))
	log.SetOutput(io.Discard) // net/http tells there what a proxy sees; the parts count it
	harness.Main("soak", os.Stderr, func(ctx context.Context) error { return c.run(ctx, os.Stdout, os.Stderr) })
}

// errMissed is returned when a bound was missed; the table says which.
var errMissed = errors.New("a bound was missed")

// run proves the configured parts and prints the table, also of what was seen before a failure.
func (c command) run(ctx context.Context, out, progress io.Writer) error {
	if err := c.complete(); err != nil {
		return err
	}
	s := &soak{command: c, log: progress, report: &report{}}
	err := s.prove(ctx)
	s.report.print(out)
	if err == nil && s.report.missed() {
		err = errMissed
	}
	s.clean(err == nil)
	return err
}

// complete fills what has a default that is not a constant and refuses what cannot work.
func (c *command) complete() error {
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	if c.EngineLib == "" {
		c.EngineLib = clickhouse.LibraryBelow(".")
	}
	if min(c.RangesFor, c.MixedFor, c.KillEvery, c.HoldFor, c.OracleFor, c.SiegeFor, c.SourcesFor,
		c.UpgradeFor, c.PushFor) < time.Second ||
		min(c.Connections, c.Tries, c.Kills, c.PushKills, c.MoveKills, c.Answers, c.OracleRuns, c.Histories,
			c.SourceRuns, c.Narrowed, c.NarrowedRuns) < 1 ||
		c.MemoryBound < 1 {
		return errors.New("times must be at least 1s, and numbers at least 1")
	}
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	for _, name := range c.SiegeOf {
		if !slices.ContainsFunc(siegeAttacks, func(a siegeAttack) bool { return a.name == name }) {
			return fmt.Errorf("--siege-of: there is no attack %q; there are %s", name, attackNames())
		}
	}
	return c.Only.Check("part", names)
}
