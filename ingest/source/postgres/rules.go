package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/normalize"
)

// Gaps are what the clock of a mapping's SELECT cannot show.
type Gaps struct {
	Hides  bool     // it may leave rows out that it had before
	Joined []string // tables that it reads and whose changes do not move its updated_at, if that is known
	// Elsewhere are tables whose rows were written elsewhere, and have the times of then when they arrive.
	Elsewhere []string
}

// Gaps finds the gaps in how PostgreSQL would run the SELECT of a kind.
func (d *Database) Gaps(ctx context.Context, kind normalize.Kind) (Gaps, error) {
	plan, err := d.explain(ctx, kind, "", "SELECT s.updated_at, s.* FROM "+d.from(kind), nil)
	if err != nil {
		return Gaps{}, err
	}
	clock := "" // not known of an Append, which shows no columns
	if len(plan.Output) > 0 {
		clock = plan.Output[0]
	}
	elsewhere, err := d.elsewhere(ctx, &plan)
	return Gaps{plan.hides(), plan.joined(clock), elsewhere}, err
}

// elsewhere returns those tables of a plan that are filled by a subscription or a REFRESH, or are of another server.
func (d *Database) elsewhere(ctx context.Context, plan *node) (tables []string, err error) {
	var read []string
	plan.each(func(n *node) {
		if n.Relation != "" {
			read = append(read, pgx.Identifier{n.Schema, n.Relation}.Sanitize())
		}
	})
	err = d.reading(ctx, "", "", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `WITH RECURSIVE part (name, oid) AS (
				SELECT name, to_regclass(name)::oid FROM unnest(string_to_array($1, E'\n')) AS name
				UNION SELECT name, inhparent FROM part JOIN pg_inherits ON inhrelid = oid)
			SELECT DISTINCT name FROM part JOIN pg_class AS c USING (oid)
			WHERE relkind IN ('m', 'f') OR EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = c.oid)
			ORDER BY name`, strings.Join(read, "\n"))
		if err == nil {
			tables, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return tables, err
}

// hides reports whether a condition, or a join that needs a partner, can leave rows out.
func (n *node) hides() bool {
	if n.Filter != "" || n.OneTime != "" || n.Cond != "" {
		return true
	}
	kept := []string{"Outer", "Member", "Subquery"}
	switch n.Join {
	case "", "Left":
	case "Right":
		kept = []string{"Inner"}
	case "Full":
		return false
	default:
		return true
	}
	for i := range n.Plans {
		if slices.Contains(kept, n.Plans[i].Parent) && n.Plans[i].hides() {
			return true
		}
	}
	return false
}

// joined returns the tables that the expression of the clock does not mention, where several are read for one row.
func (n *node) joined(clock string) (tables []string) {
	several, known := false, false
	n.each(func(n *node) {
		several = several || n.Join != "" || n.Parent == "SubPlan" || n.Parent == "InitPlan"
		if n.Relation == "" {
			return
		}
		if mentions([]string{clock}, n.Alias) || mentions([]string{clock}, partitionOf(n.Alias)) {
			known = true
		} else {
			tables = append(tables, pgx.Identifier{n.Schema, n.Relation}.Sanitize())
		}
	})
	if !several || !known {
		return nil
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// partitionOf is the alias of a partitioned table whose partition a plan calls by the alias, such as runs of runs_1.
func partitionOf(alias string) string {
	if i := strings.LastIndexByte(alias, '_'); i > 0 {
		return alias[:i]
	}
	return alias
}
