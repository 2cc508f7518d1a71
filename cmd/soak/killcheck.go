package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const (
	// eagerShare makes a server refresh the rollup soon.
	eagerShare = "0.9"
	// refreshPatience is how long servers may take until the rollup has all that is stored and is repaired: a claim that
	// was left by a process that died is waited for.
	refreshPatience = 4 * time.Minute
	refreshPoll     = 200 * time.Millisecond
)

// serve starts a server that refreshes the rollup.
func (k *killStore) serve() (*process.Server, error) {
	return k.product.Serve(k.life, k.dir, "--admin-listen", "off", "--maintenance-share", eagerShare)
}

// checkAll compares what is stored with what must be, and the rollup with what is stored. A refresher has to run.
func (k *killStore) checkAll(ctx context.Context, want versions) ([]finding, error) {
	server, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	found, err := compareStored(ctx, server.Conn(), want)
	if err != nil {
		return nil, err
	}
	more, err := k.checkRollup(ctx)
	return append(found, more...), err
}

// checkRollup waits until everything stored is in the rollup, and compares: with `rollup check`, and the number of
// records by SQL of its own.
func (k *killStore) checkRollup(ctx context.Context) ([]finding, error) {
	found, err := k.countRollup(ctx)
	if err != nil {
		return nil, err
	}
	more, err := k.rollupCheck(ctx)
	return append(found, more...), err
}

// countRollup waits until everything stored is in the rollup, and compares the number of records.
func (k *killStore) countRollup(ctx context.Context) ([]finding, error) {
	server, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	conn := server.Conn()
	now, err := snapshot.Now(ctx, conn)
	if err != nil {
		return nil, err
	}
	if !harness.Poll(ctx, refreshPatience, refreshPoll, func() bool {
		var state snapshot.Log
		state, err = snapshot.ReadLog(ctx, conn)
		return err == nil && len(state.Damaged) == 0 && state.Until.After(now)
	}) {
		return []finding{{differing: 1, what: fmt.Sprintf("the rollup did not come to %s whole: %v", now, err)}}, ctx.Err()
	}
	return compareCounts(ctx, conn)
}

// compareCounts compares the number of records of each organization in the rollup and in the base tables.
func compareCounts(ctx context.Context, conn driver.Conn) (found []finding, err error) {
	for _, t := range schema.RollupTables {
		rows, err := conn.Query(ctx, "SELECT toString(organization_id), sum(n) FROM ("+
			"SELECT organization_id, toInt64(sum(sign)) AS n FROM "+t.Table+" GROUP BY organization_id UNION ALL "+
			"SELECT organization_id, -toInt64(count()) FROM "+t.Source+" FINAL GROUP BY organization_id)"+
			" GROUP BY organization_id HAVING sum(n) != 0")
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var f finding
			var n int64
			if err := rows.Scan(&f.cycle, &n); err != nil {
				rows.Close()
				return nil, err
			}
			f.differing, f.what = 1, fmt.Sprintf("%s counts %+d records", t.Table, n)
			found = append(found, f)
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rollupCheck runs `runlens rollup check`.
func (k *killStore) rollupCheck(ctx context.Context) ([]finding, error) {
	out, err := k.output(ctx, "rollup", "check", "--json")
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return nil, err
	}
	var differences []struct {
		Table, Projection, Span string
		Organization            string `json:"organization_id"`
		Records                 int64
		InRollup                int64 `json:"in_rollup"`
	}
	if jsonErr := json.Unmarshal([]byte(out), &differences); jsonErr != nil {
		return []finding{{differing: 1, what: fmt.Sprint("rollup check: ", err)}}, nil
	}
	var found []finding
	for _, d := range differences {
		found = append(found, finding{cycle: d.Organization, differing: 1,
			what: fmt.Sprintf("rollup check: %s%s %s: %d records, %d in the rollup", d.Table, d.Projection, d.Span,
				d.Records, d.InRollup)})
	}
	return found, nil
}

// verify runs `runlens verify` against a source.
func (k *killStore) verify(ctx context.Context, args ...string) []finding {
	out, err := k.output(ctx, append([]string{"verify"}, args...)...)
	if err == nil {
		return nil
	}
	said := strings.ReplaceAll(lastOf(out), "\n", "; ")
	return []finding{{differing: 1, what: fmt.Sprintf("verify: %v: %s", err, said)}}
}
