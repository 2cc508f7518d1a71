package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/doctor"
	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

type doctorCmd struct {
	storeFlags
	databaseFlags
	redisFlags
	JSON bool `help:"Print what was found as JSON."`
}

func (doctorCmd) Help() string {
	return `Checks ClickHouse: version, servers and tables, migrations, rights of the user, clock, disks, open files,
mutations that fail, ClickHouse's own log tables, and settings that fail statements or cost much. With --source also
what a worker needs of PostgreSQL, and with --redis-url whether that Redis works. Every finding says what is wrong and
what to do: the GRANT, the SQL or the XML to paste. It changes nothing.
The exit code is 1 if there is a problem. Warnings, and what is not known because a right is missing, leave it 0.
serve and worker make the quick ones of these checks when they start, and log what is wrong.

Example:
  runlens doctor --clickhouse-url clickhouse://runlens@db:9000/runlens --clickhouse-password-file password
  runlens doctor --source postgres://reader@db.internal/production --json`
}

func (c doctorCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	if c.Source == "" && c.Mapping != "" {
		return usageError{errors.New("--mapping says how --source is read, which is missing")}
	}
	found := []finding.Finding{ownFiles()}
	if c.Source != "" {
		database, err := c.databaseFlags.open(ctx)
		if err != nil {
			return err
		}
		defer database.Close()
		limited, cancel := context.WithTimeout(ctx, examining)
		found = append(database.Examine(limited, false), found...)
		cancel()
	}
	ofRedis, err := c.redisFlags.examine()
	if err != nil {
		return err
	}
	found = append(ofRedis, found...)
	ofStores, err := c.examineStores(ctx, logger)
	if err != nil {
		return err
	}
	found = append(ofStores, found...)
	if err := printFindings(io.out, found, c.JSON); err != nil {
		return err
	}
	if finding.Worst(found) == finding.Problem {
		return exitError{exitFailed}
	}
	return nil
}

const (
	// examining bounds all checks of a store or a source.
	examining = time.Minute
	// glancing bounds those of a start.
	glancing = 2 * time.Second
)

// examineStores makes all checks of the store, or of those of all cells.
func (c doctorCmd) examineStores(ctx context.Context, logger *slog.Logger) (all []finding.Finding, err error) {
	p, err := c.named()
	if err != nil {
		return nil, err
	}
	for _, name := range p.names {
		found, err := p.flags[name].examine(ctx, logger)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if name != oneCell {
				found[i].Says = "cell " + name + ": " + found[i].Says
			}
		}
		all = append(all, found...)
	}
	return all, nil
}

// examine makes all checks of the store. That it cannot be opened is a finding, too.
func (f storeFlags) examine(ctx context.Context, logger *slog.Logger) ([]finding.Finding, error) {
	store, err := openStore(ctx, f, logger)
	if err != nil {
		var wrong usageError
		if errors.As(err, &wrong) || ctx.Err() != nil {
			return nil, err
		}
		return []finding.Finding{unopened(err)}, nil
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(ctx, examining)
	defer cancel()
	return examined(store).Examine(ctx), nil
}

// unopened is the finding of a store that cannot be opened.
func unopened(err error) finding.Finding {
	f := finding.Finding{Check: "connection", Result: finding.Problem, Says: err.Error()}
	switch code := failure.CodeOf(err); {
	case errors.Is(err, clickhouse.ErrOtherNode):
		f.Check = "topology"
	case errors.Is(err, clickhouse.ErrRowPolicy):
		f.Check = "row policies"
	case code == failure.CodeUnknownDatabase:
		f.Says = "the database does not exist, and the user may not create it"
		f.Do = "CREATE DATABASE, by a user who may, or GRANT CREATE DATABASE ON the database TO the user"
	case code == failure.CodeReadonly, code == failure.CodeConstraint:
		f.Says = failure.Of("connect", err).Error()
		f.Do = "take the constraint, or readonly, out of the profile of the user"
	case code == failure.CodeAccessDenied:
		f.Says, f.Do = "the user may not use the database", "GRANT SELECT, INSERT ON the database.* TO the user"
	case code == failure.CodeAuthentication:
		f.Says = "ClickHouse refuses the user's name or password"
		f.Do = "check --clickhouse-url and --clickhouse-password-file"
	}
	return f
}

// examined is a store as the doctor takes it.
func examined(store *clickhouse.Server) doctor.Store {
	return doctor.Store{Conn: store.Conn(), Database: store.Database(), Embedded: store.Embedded(),
		Servers: store.Servers(), Limits: doctor.Usual,
		State: func(ctx context.Context) (schema.State, error) { return schemaOf(ctx, store) }}
}

// glanceAt logs what a quick look at the store finds wrong. The process goes on.
func glanceAt(ctx context.Context, store *clickhouse.Server, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, glancing)
	defer cancel()
	finding.Log(logger, examined(store).Glance(ctx))
}

// ownFiles judges the limit of open files of a server on this machine.
func ownFiles() finding.Finding {
	f := finding.Finding{Check: "open files", Result: finding.OK}
	files, err := openFiles()
	available := availableFor(files, usualQueries, 1)
	switch {
	case err != nil:
		f.Result, f.Says = finding.Problem, err.Error()
	case available < usualConnections:
		f.Result, f.Do = finding.Warning, "ulimit -n 65536, or LimitNOFILE=65536 in the unit"
		f.Says = fmt.Sprintf("a process of this user may have %d files open, so that serve takes %d connections, not %d",
			files, available, usualConnections)
	default:
		f.Says = fmt.Sprintf("a process of this user may have %d files open", files)
	}
	return f
}

// printFindings prints a line for each finding, and below it what to do.
func printFindings(w io.Writer, found []finding.Finding, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(struct {
			Result   finding.Result    `json:"result"`
			Findings []finding.Finding `json:"findings"`
		}{finding.Worst(found), found})
	}
	counts := map[finding.Result]int{}
	for _, f := range found {
		counts[f.Result]++
		say(w, "%-9s  %-19s  %s", f.Result, f.Check, f.Says)
		if f.Do != "" {
			for line := range strings.SplitSeq(output.PrintableLines(f.Do), "\n") {
				fmt.Fprintf(w, "%32s%s\n", "", line)
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s, %d not known, %d ok\n", plural(counts[finding.Problem], "problem"),
		plural(counts[finding.Warning], "warning"), counts[finding.Unknown], counts[finding.OK])
	return err
}
