package postgres

import (
	"context"

	"github.com/runlens/runlens/ingest/normalize"
)

// PagePlan returns the types of the nodes by which PostgreSQL reads the page after a key, from the top.
func (d *Database) PagePlan(ctx context.Context, kind normalize.Kind, after Key) (types []string, err error) {
	where, order, args := changedAfter(kind, after)
	plan, err := d.explain(ctx, pageSettings, "SELECT * FROM "+d.from(kind)+" WHERE "+where+order, append(args, 1000))
	plan.each(func(n *node) { types = append(types, n.Type) })
	return types, err
}
