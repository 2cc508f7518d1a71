package worker

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A replacement takes records out of the store and stores what the source has of them. In between they are missing, so
// the store knows of it for that time:
//
//  1. The ids are stored under a random number. A crash before: nothing has changed. After: see finish.
//  2. The records are purged, which may be in part only. A crash: see finish.
//  3. What the source has of them is stored. A crash before or after: see finish.
//  4. The ids are taken out. A crash before: see finish. After: the replacement is complete.
//
// A worker that starts, and one whose comparison failed, finishes what it finds: it reads the ids from the source
// again, which is right whatever happened to them meanwhile, and does 1 to 4: whoever began may go on and take out the
// ids that it stored, so that those of a crash of this one are stored under a number of its own. Done twice, by two
// workers too, that leaves what the source has. Of ids that the source does not have any more nothing is stored; what
// is left of them in the store is found by the next comparison.
type replacement struct {
	number uint64
	part   verify.Part
	ids    []uuid.UUID
}

// begin is 1.
func (w *worker) begin(ctx context.Context, part verify.Part, ids []uuid.UUID) (replacement, error) {
	var b [8]byte
	rand.Read(b[:])
	r := replacement{number: binary.LittleEndian.Uint64(b[:]), part: part, ids: ids}
	err := w.retry.Do(ctx, "note what is replaced", func() error {
		batch, err := w.Conn.PrepareBatch(ctx, "INSERT INTO "+schema.TableReplacements+
			" (replacement, source, organization_id, kind, id)")
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := batch.Append(r.number, w.Name, string(part.Organization), string(part.Kind), id); err != nil {
				return err
			}
		}
		return batch.Send()
	})
	if err != nil {
		return r, fmt.Errorf("note what is replaced: %w", err)
	}
	return r, nil
}

// replace is 2 to 4: the records going go, those of a batch come.
func (w *worker) replace(ctx context.Context, r replacement, going []uuid.UUID, batch *write.Batch) error {
	if err := w.exchange(ctx, r.part, going, batch); err != nil {
		return err
	}
	return w.takeOut(ctx, r)
}

// exchange is 2 and 3.
func (w *worker) exchange(ctx context.Context, of verify.Part, going []uuid.UUID, batch *write.Batch) error {
	if len(going) == 0 {
		return nil
	}
	if err := purge.Records(ctx, w.Conn, of.Kind, of.Organization, going); err != nil {
		return err
	}
	if err := w.write(ctx, batch); err != nil {
		return err
	}
	w.copiers[of.Kind].recent.drop(of.Organization, going)
	return nil
}

// takeOut is 4.
func (w *worker) takeOut(ctx context.Context, r replacement) error {
	err := w.retry.Do(ctx, "take out what was replaced", func() error {
		return w.Conn.Exec(ctx, fmt.Sprintf("ALTER TABLE %s DROP PARTITION ID '%d'", schema.TableReplacements, r.number))
	})
	if err != nil {
		return fmt.Errorf("take out what was replaced: %w", err)
	}
	return nil
}

// finish does what replacements of this source have left undone, of organizations that the store has: those of one that
// is on its way are finished when it is here.
func (w *worker) finish(ctx context.Context) error {
	left, err := w.unfinished(ctx)
	if err != nil {
		return fmt.Errorf("search for replacements that did not end: %w", err)
	}
	listed, ending := map[uint64]bool{}, map[uint64]bool{} // the latter are of this worker, for others that it finishes
	for _, r := range left {
		listed[r.number] = true
		if own, ok := w.finishing[r.number]; ok {
			ending[own.number] = true
		}
	}
	for _, r := range left {
		if ending[r.number] || !w.owns(r.part.Organization) {
			continue
		}
		if err := w.finishOne(ctx, r, listed); err != nil {
			return err
		}
	}
	return nil
}

// finishOne finishes a replacement, under a number of its own: that of a try which failed, if it is listed still.
func (w *worker) finishOne(ctx context.Context, r replacement, listed map[uint64]bool) error {
	copier := w.copiers[r.part.Kind]
	copier.inFlight.Lock()
	defer copier.inFlight.Unlock()
	now, err := w.read(postgres.Latest(ctx), r.part, r.ids)
	if err != nil {
		return err
	}
	own := w.finishing[r.number]
	if !listed[own.number] {
		if own, err = w.begin(ctx, r.part, r.ids); err != nil {
			return err
		}
		w.finishing[r.number] = own
	}
	if err := w.exchange(ctx, r.part, now.valid, &now.batch); err != nil {
		return err
	}
	for _, done := range []replacement{r, own} {
		if err := w.takeOut(ctx, done); err != nil {
			return err
		}
	}
	delete(w.finishing, r.number)
	w.report("finished a replacement of records that did not end", r.part, now.valid)
	return nil
}

func (w *worker) unfinished(ctx context.Context) (left []replacement, err error) {
	var rows driver.Rows
	err = w.retry.Do(ctx, "search for replacements that did not end", func() (err error) {
		left := sql.Select{
			Columns: []string{"replacement", "toString(organization_id)", "toString(kind)", "groupUniqArray(id)"},
			From:    sql.AllOrganizations("a source may have rows of several of them")(schema.TableReplacements),
			Where:   []string{"source = {source:String}"}, Group: []string{"replacement", "organization_id", "kind"},
		}
		rows, err = w.Conn.Query(ctx, left.String(), clickhouse.Named("source", w.Name))
		return err
	})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r replacement
		var organization, kind string
		if err := rows.Scan(&r.number, &organization, &kind, &r.ids); err != nil {
			return nil, err
		}
		r.part = verify.Part{Organization: schema.OrganizationID(organization), Kind: normalize.Kind(kind)}
		left = append(left, r)
	}
	return left, rows.Err()
}
