package move

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// copyCheckpoints tells the new cell how far workers had copied into the old one: what they have not stored there, the
// new cell's worker copies from there on, however far it is itself (package worker). A source of which the old cell has
// no checkpoint is copied from the beginning. What the old cell was told in this way, and its worker has not gone back
// to yet, is passed on.
func (m *mover) copyCheckpoints(ctx context.Context) error {
	newest := sql.Select{
		Columns: []string{"name", "argMax(position, (revision, saved_at)) AS last"}, From: ofAll(schema.TableCheckpoints),
		Where: []string{"startsWith(name, '" + schema.CheckpointOfWorkers + "') OR startsWith(name, '" +
			schema.CheckpointArrived + "')"}, Group: []string{"name"},
	}
	known, mine := map[string]string{}, schema.CheckpointArrived+strconv.FormatUint(m.number, 16)
	for _, s := range []*side{&m.to, &m.from} { // what the old cell says counts
		var found []struct {
			Name string `ch:"name"`
			Last string `ch:"last"`
		}
		if err := s.conn.Select(ctx, &found, newest.String()); err != nil {
			return fmt.Errorf("cell %s: read the checkpoints: %w", s.name, err)
		}
		for _, f := range found {
			// The number of the move that told it sets it apart from what is of this one.
			earlier, passed := strings.CutPrefix(f.Name, schema.CheckpointArrived)
			switch {
			case passed && s == &m.from && f.Last != "":
				known[mine+"-"+earlier] = f.Last
			case passed:
			case s == &m.from && f.Last != "":
				known[mine+":"+f.Name] = f.Last
			default:
				known[mine+":"+f.Name] = "{}"
			}
		}
	}
	for arrived, position := range known {
		err := m.to.conn.Exec(changing(ctx), "INSERT INTO "+schema.TableCheckpoints+" (name, position, revision)"+
			" SELECT {name:String}, {position:String}, 1 WHERE "+m.to.fence(),
			clickhouse.Named("name", arrived), clickhouse.Named("position", position))
		if err != nil {
			return fmt.Errorf("cell %s: keep a checkpoint: %w", m.to.name, err)
		}
	}
	return nil
}
