package postgres

import (
	"context"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runlens/runlens/ingest/normalize"
)

// PagePlan returns the types of the nodes by which PostgreSQL reads the page after a key, from the top.
func (d *Database) PagePlan(ctx context.Context, kind normalize.Kind, after Key) (types []string, err error) {
	where, order, args := changedAfter(kind, after)
	plan, err := d.explain(ctx, kind, pageSettings, "SELECT * FROM "+d.from(kind)+" WHERE "+where+order,
		append(args, 1000))
	plan.each(func(n *node) { types = append(types, n.Type) })
	return types, err
}

// SessionsThen returns the transactions of sessions, and which of them have ended since, after meanwhile.
func (d *Database) SessionsThen(ctx context.Context, meanwhile func()) (open []Transaction, err error) {
	err = d.transact(ctx, "", func(tx pgx.Tx) error {
		if open, err = d.sessions(ctx, tx); err != nil {
			return err
		}
		meanwhile()
		return d.markEnded(ctx, tx, open)
	})
	return open, err
}

// LookUpBy has something else say which addresses the name of the server has.
func (d *Database) LookUpBy(lookup pgconn.LookupFunc) { d.lookup = lookup }

// Socket is that of a connection.
func (d *Database) Socket(ctx context.Context) (raw syscall.RawConn, err error) {
	err = d.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		raw, err = c.Conn().PgConn().Conn().(*net.TCPConn).SyscallConn()
		return err
	})
	return raw, err
}
