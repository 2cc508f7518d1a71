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

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/schema"
)

type verifyCmd struct {
	storeFlags
	databaseFlags
	formatFlags
	Files        []string      `arg:"" optional:"" name:"file" placeholder:"FILE" help:"@verify_files"`
	Org          string        `placeholder:"ORG" help:"Compare this organization only."`
	Subset       bool          `help:"@subset"`
	RecheckAfter time.Duration `default:"5s" placeholder:"DURATION" help:"@recheck_after"`
	IDs          int           `name:"ids" default:"20" placeholder:"N" help:"Name up to N ids of each difference a day."`
	JSON         bool          `help:"Print the report as JSON."`
}

func (verifyCmd) Help() string {
	return `Compares a source with the store: for every organization, kind of record and UTC day, the number of records
(newest versions) and a checksum of all their fields. If something differs it names the ids, and the exit code is 1.
Records of the source that break a rule are not compared. If nothing else differs the exit code is 3.
If there is nothing to compare, it says so and the exit code is 1.
It also names runs that were sent with several created_at, and attribution records that were sent with several
contents or occurred_at. They count once and are no difference.

Example:
  runlens verify --source postgres://reader@db.internal/production
  runlens verify --subset --record run 'export/runs-*.parquet'`
}

func (c verifyCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	readingMemory.bound()
	options := verify.Options{Subset: c.Subset, MaxIDs: c.IDs}
	if c.Org != "" {
		organization, err := schema.ParseOrganizationID(c.Org)
		if err != nil {
			return usageError{fmt.Errorf("--org %w", err)}
		}
		options.Organization = organization
	}
	switch {
	case (c.Source != "") == (len(c.Files) > 0):
		return usageError{errors.New("name either files or --source, the database to compare with")}
	case c.Source != "":
		database, err := c.databaseFlags.open(ctx)
		if err != nil {
			return err
		}
		defer database.Close()
		if err := database.Check(ctx); err != nil {
			return err
		}
		options.Source, options.RecheckAfter = verify.Postgres{Database: database}, c.RecheckAfter
	default:
		in, err := c.formatFlags.open(c.Files, io)
		if err != nil {
			return usageError{err}
		}
		if !in.resumable {
			return usageError{errors.New("files that are compared may be read several times; standard input and pipes cannot")}
		}
		options.Source = verify.Files(in.files)
	}
	groups := 0
	compare := func(f storeFlags, store *clickhouse.Server) error {
		options.Conn, options.Owns = store.Conn(), f.owns()
		n, err := c.compare(ctx, options, logger, io)
		groups += n
		return err
	}
	if options.Organization == "" {
		err := c.eachStore(ctx, logger, io, compare)
		return c.proved(groups, err)
	}
	p, err := c.place(ctx, logger)
	if err != nil {
		return err
	}
	defer p.Close()
	f := p.flags[p.nameOf(options.Organization)]
	err = f.withStore(ctx, logger, func(store *clickhouse.Server) error { return compare(f, store) })
	return c.proved(groups, err)
}

// compare compares the source with a store, as far as the store is to have it, and returns how many groups were
// compared: none in a cell that has no organization yet.
func (c verifyCmd) compare(
	ctx context.Context, options verify.Options, logger *slog.Logger, io streams,
) (groups int, err error) {
	progress := newProgress(io.err, "verify", noBytes, logger)
	options.Progress = func(read int64) { progress.show(0, "read", read) }
	report, err := verify.Compare(ctx, options)
	progress.end()
	if err == nil {
		err = c.print(io.out, report)
	}
	switch {
	case err != nil:
		return 0, err
	case len(report.Differences) > 0:
		return report.Groups, exitError{exitFailed}
	case report.Rejected > 0:
		return report.Groups, exitError{exitRejected}
	default:
		return report.Groups, nil
	}
}

// proved is the error of comparisons of so many groups: to compare nothing with nothing proves nothing (contract 28),
// also where records of the source break a rule.
func (c verifyCmd) proved(groups int, err error) error {
	if code := codeOf(err); groups > 0 || code != exitDone && code != exitRejected {
		return err
	}
	of := ""
	if c.Org != "" {
		of = " of the organization " + c.Org
	}
	if c.Subset {
		return fmt.Errorf("nothing was compared: the source has no record%s", of)
	}
	return fmt.Errorf("nothing was compared: neither the source nor the store has a record%s", of)
}

func (c verifyCmd) print(out io.Writer, r verify.Report) error {
	if c.JSON {
		return json.NewEncoder(out).Encode(r)
	}
	for _, d := range r.Differences {
		fmt.Fprintf(out, "%s %s %s: %d in the source, %d in the store\n", d.Organization, d.Kind, d.Day, d.Source.Count,
			d.Store.Count)
		for _, w := range []struct {
			what string
			rows verify.Rows
		}{
			{"missing in the store", d.Missing}, {"older in the store", d.Stale}, {"newer in the store", d.Newer},
			{"other content in the store", d.Changed}, {"only in the store", d.Extra},
		} {
			if w.rows.Count == 0 {
				continue
			}
			fmt.Fprintf(out, "  %s: %d (%s)\n", w.what, w.rows.Count, named(w.rows))
		}
	}
	for _, conflict := range r.Conflicts {
		what := "sent with several created_at, of which the newest version's counts"
		if conflict.Kind == normalize.KindAttribution {
			what = "sent with several contents or occurred_at, of which those stored first count"
		}
		fmt.Fprintf(out, "%s %s: %d %s (%s)\n", conflict.Organization, conflict.Kind, conflict.Count, what,
			named(conflict.Rows))
	}
	verdict, rejected := "the store holds exactly what the source holds", ""
	if r.Rejected > 0 {
		rejected = fmt.Sprintf(", but for %d records of the source that BREAK A RULE and were not compared", r.Rejected)
	}
	if r.Purged > 0 {
		rejected += fmt.Sprintf(", but for %d records of people who were purged, which stay out", r.Purged)
	}
	switch {
	case r.Groups == 0:
		verdict = "nothing was compared"
	case len(r.Differences) > 0:
		verdict = fmt.Sprintf("%d of %d groups of organization, kind and day DIFFER", len(r.Differences), r.Groups)
	case c.Subset:
		verdict = "the store holds all that the source holds"
	}
	_, err := fmt.Fprintf(out, "%s%s: %d records read, %d rejected, %d rows in %d groups\n",
		verdict, rejected, r.Read, r.Rejected, r.Rows, r.Groups)
	return err
}

// named are the ids of rows, as far as they are named.
func named(rows verify.Rows) string {
	names := make([]string, len(rows.IDs))
	for i, id := range rows.IDs {
		names[i] = id.String()
	}
	if int64(len(names)) < rows.Count {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
