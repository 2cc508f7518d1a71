package postgres

import (
	"context"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/normalize"
)

// A node is a node of a plan, as EXPLAIN (VERBOSE, FORMAT JSON) prints it.
type node struct {
	Type      string   `json:"Node Type"`
	Schema    string   `json:"Schema"`
	Relation  string   `json:"Relation Name"`
	Alias     string   `json:"Alias"`
	Parent    string   `json:"Parent Relationship"`
	Join      string   `json:"Join Type"`
	Filter    string   `json:"Filter"`
	OneTime   string   `json:"One-Time Filter"`
	Cond      string   `json:"Index Cond"`
	Output    []string `json:"Output"` // expressions of its columns
	SortKey   []string `json:"Sort Key"`
	Presorted []string `json:"Presorted Key"`
	Plans     []node   `json:"Plans"`
}

// each calls visit with a node and all nodes below it.
func (n *node) each(visit func(*node)) {
	visit(n)
	for i := range n.Plans {
		n.Plans[i].each(visit)
	}
}

// explain returns how PostgreSQL would run a statement that reads a kind.
func (d *Database) explain(
	ctx context.Context, kind normalize.Kind, settings, statement string, args []any,
) (node, error) {
	var text string
	err := d.reading(ctx, kind, settings, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "EXPLAIN (VERBOSE, FORMAT JSON) "+statement, args...).Scan(&text)
	})
	if err != nil {
		return node{}, err
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		return node{}, err
	}
	return plans[0].Plan, nil
}

// MissingIndex returns what a page of changes lacks at the source: the statement that creates the index, or what an
// index would have to contain where that is not known to be of one table. It is empty where nothing is missing.
func (d *Database) MissingIndex(ctx context.Context, kind normalize.Kind) (string, error) {
	where, order, args := changedAfter(kind, Key{})
	const page = 1000 // of any size: the settings leave the planner no choice where there is an index
	plan, err := d.explain(ctx, kind, pageSettings, "SELECT * FROM "+d.from(kind)+" WHERE "+where+order,
		append(args, page))
	if err != nil {
		return "", err
	}
	var sort *node
	plan.each(func(n *node) {
		if sort == nil && (n.Type == "Sort" || n.Type == "Incremental Sort") {
			sort = n
		}
	})
	const keys = 2 // updated_at and the id; few rows have the same ones of both
	if sort == nil || len(sort.Presorted) >= keys {
		return "", nil
	}
	return indexOf(&plan, sort.SortKey[:min(keys, len(sort.SortKey))]), nil
}

// indexOf is the statement that creates an index on the keys of a sort, if all of them are of one table.
func indexOf(plan *node, keys []string) string {
	tables := map[string]*node{}
	plan.each(func(n *node) {
		if n.Relation != "" && mentions(keys, n.Alias) {
			tables[n.Alias] = n
		}
	})
	if len(tables) != 1 {
		return "an index on (" + strings.Join(keys, ", ") + ")"
	}
	for alias, table := range tables {
		columns := make([]string, len(keys))
		for i, key := range keys {
			columns[i] = columnOf(alias).ReplaceAllString(key, "")
			if !plainColumn.MatchString(columns[i]) {
				columns[i] = "(" + columns[i] + ")"
			}
		}
		name := pgx.Identifier{table.Schema, table.Relation}.Sanitize()
		return "CREATE INDEX CONCURRENTLY ON " + name + " (" + strings.Join(columns, ", ") + ")"
	}
	return ""
}

// plainColumn matches a column, in quotes if it needs them.
var plainColumn = regexp.MustCompile(`^([a-z_][a-z0-9_$]*|"([^"]|"")+")$`)

// columnOf matches what stands before a column of a table in an expression of a plan.
func columnOf(alias string) *regexp.Regexp {
	return regexp.MustCompile(`(?:\b` + regexp.QuoteMeta(alias) + `|` +
		regexp.QuoteMeta(pgx.Identifier{alias}.Sanitize()) + `)\.`)
}

func mentions(expressions []string, alias string) bool {
	for _, e := range expressions {
		if columnOf(alias).MatchString(e) {
			return true
		}
	}
	return false
}
