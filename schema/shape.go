package schema

import (
	"regexp"
	"strings"
)

// A Shape is how a table or a view of the store is made, as far as answers rest on it.
type Shape struct {
	Name   string
	Engine string // with its arguments, such as CollapsingMergeTree(sign); MaterializedView for a view
	Key    string // the sorting key, without the parentheses around it; empty for a view

	Partition   string // the partition key; empty for none
	TTL         bool   // rows leave it by their age
	Projections []string
	Columns     []Column
	Settings    []string // such as "fsync_after_insert = 1", if more than speed rests on them
	To, Select  string   // of a view: the table that it fills, and from what
}

var (
	createTable = regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS (\w+)\n.*\nENGINE = (\w+(?:\([^)]*\))?)` +
		`.*\nORDER BY \(?([^()\n]*)\)?`)
	partitionBy = regexp.MustCompile(`\nPARTITION BY (.*)\n`)
	projection  = regexp.MustCompile(`\n    PROJECTION (\w+)\n`)
	createView  = regexp.MustCompile(`CREATE MATERIALIZED VIEW IF NOT EXISTS (\w+) TO (\w+) AS\n((?s:.*))`)
)

// Shapes returns the shapes of the tables and views that the migrations of this binary make, in their order. A table
// that a migration changes is as its CREATE statement says: no migration changes an engine or a key.
func Shapes() (shapes []Shape, err error) {
	err = Own.each(func(_ int, migration string) error {
		for statement := range strings.SplitSeq(migration, ";\n") {
			if made := createTable.FindStringSubmatch(statement); made != nil {
				shape := Shape{Name: made[1], Engine: made[2], Key: made[3], TTL: strings.Contains(statement, "\nTTL "),
					Columns: Columns(made[0]), Settings: kept.FindAllString(statement, -1)}
				if by := partitionBy.FindStringSubmatch(statement); by != nil {
					shape.Partition = by[1]
				}
				for _, named := range projection.FindAllStringSubmatch(statement, -1) {
					shape.Projections = append(shape.Projections, named[1])
				}
				shapes = append(shapes, shape)
			} else if made := createView.FindStringSubmatch(statement); made != nil {
				shapes = append(shapes, Shape{Name: made[1], Engine: "MaterializedView", To: made[2], Select: made[3]})
			} else {
				alter(shapes, statement)
			}
		}
		return nil
	})
	return shapes, err
}
