package schema_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
)

func str(s string) *string { return &s }

// The version with the greatest updated_at wins as a whole row, nulls included, whatever the order
// of arrival and however parts were merged; of two with equal updated_at the same one always wins
// (contract 3 and 4.16). first_stored_at stays that of the first version (contract 4.1).
func TestRunsKeepTheNewestVersion(t *testing.T) {
	ctx := context.Background()
	created := time.Date(1950, 3, 1, 12, 0, 0, 123e6, time.UTC) // versions before 1970 sort first
	id, agentA, agentB := uuid.New(), uuid.New(), uuid.New()
	type version struct {
		agent                    uuid.UUID
		kind, status             string
		identifier, name, class_ *string
		updated                  time.Time
	}
	versions := []version{
		{agentA, "agent", "PENDING", str("ada@example.com"), str("Ada"), str("internal"), created},
		{agentB, "sub_agent", "FAILED", nil, nil, nil, created.Add(time.Millisecond)},
		{agentA, "agent", "CANCELLED", str("a"), nil, nil, created.Add(2 * time.Millisecond)},
		{agentB, "agent", "CANCELLED", str("b"), str("B"), nil, created.Add(2 * time.Millisecond)},
	}
	answers := map[string]bool{}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1, 2}, {3, 0, 2}} {
		store, db := open(t)
		if err := schema.Own.Up(ctx, db); err != nil {
			t.Fatal(err)
		}
		conn := store.Conn()
		insert := func(v version) {
			batch, err := conn.PrepareBatch(ctx, "INSERT INTO runs ("+strings.Join(schema.RunColumns, ", ")+")")
			if err != nil {
				t.Fatal(err)
			}
			if err := batch.Append("acme", id, created, v.agent, v.kind, (*uuid.UUID)(nil), v.status, v.identifier, v.name,
				v.class_, v.updated); err != nil {
				t.Fatal(err)
			}
			if err := batch.Send(); err != nil {
				t.Fatal(err)
			}
		}
		read := func() (answer string, firstStored time.Time) {
			row := conn.QueryRow(clickhouse.Context(ctx,
				clickhouse.WithSettings(clickhouse.Settings{"optimize_functions_to_subcolumns": 0})),
				`SELECT concat(toString(bitAnd(bitShiftRight(state, 6), 15)), ' ', toString(bitAnd(bitShiftRight(state, 3), 7)), `+
					`' ', toString(bitAnd(state, 7)), ' ',
					toString(tupleElement(agent, 'agent_id')), ' ', ifNull(tupleElement(record, 'initiator_identifier'), '-'), ' ', `+
					`ifNull(tupleElement(record, 'initiator_name'), '-')), first_stored_at
				FROM runs FINAL`)
			if err := row.Scan(&answer, &firstStored); err != nil {
				t.Fatal(err)
			}
			return answer, firstStored
		}
		insert(versions[order[0]])
		_, first := read()
		for _, i := range order[1:] {
			insert(versions[i])
		}
		unmerged, stored := read()
		if err := conn.Exec(ctx, "OPTIMIZE TABLE runs FINAL"); err != nil {
			t.Fatal(err)
		}
		merged, storedMerged := read()
		if unmerged != merged {
			t.Errorf("order %v: %q before the merge and %q after it", order, unmerged, merged)
		}
		if !stored.Equal(first) || !storedMerged.Equal(first) {
			t.Errorf("order %v: first_stored_at moved from %v to %v and %v", order, first, stored, storedMerged)
		}
		answers[merged] = true
	}
	if len(answers) != 1 {
		t.Errorf("the winner depends on the order of arrival: %v", answers)
	}
	for answer := range answers {
		if !strings.HasPrefix(answer, "11 1 0 ") || strings.Contains(answer, agentA.String()+" b") ||
			strings.Contains(answer, agentB.String()+" a") {
			t.Errorf("%q mixes versions or is not the newest", answer)
		}
	}
}
