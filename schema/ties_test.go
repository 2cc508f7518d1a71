package schema_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
)

// The version with the greatest updated_at wins as a whole row, nulls included. Of versions with the same updated_at,
// status, kind and initiator type one wins in every column that queries read. Both are so whatever the order of
// arrival, before merges and after them (contract 3 and 4.16), and first_stored_at stays that of the first version
// (contract 4.1).
func TestOneVersionWinsInEveryColumn(t *testing.T) {
	ctx := context.Background()
	at := time.Date(1950, 3, 1, 12, 0, 0, 123e6, time.UTC) // versions before 1970 sort first
	agents := []uuid.UUID{uuid.MustParse("ffffffff-0000-4000-8000-000000000001"),
		uuid.MustParse("00000000-0000-4000-8000-000000000002")}
	identifiers := []*string{nil, new("a"), new("b"), new("ada@example.com"), new("ada@example.org"),
		new("zoë@example.com"), new("")}
	const runs, newest = 300, 2
	// What distinguishes versions: the name says which status, agent and identifier it came with.
	type version struct {
		agent        uuid.UUID
		identifier   *string
		name, status string
		updated      time.Time
	}
	versionOf := func(run, k int) version {
		v := version{agent: agents[(run+k)%2*(run/7%2)], identifier: identifiers[(run/3+k*(1+run%5))%len(identifiers)],
			status: "RUNNING", updated: at}
		status, older := 2, ""
		if run%2 == 1 { // the others have ties
			status, v.status = []int{11, 1, 10}[k], []string{"CANCELLED", "PENDING", "FAILED"}[k]
			if v.updated = at.Add(time.Duration(k) * time.Millisecond); k != newest {
				older = " older"
			}
		}
		identifier := "-"
		if v.identifier != nil {
			identifier = *v.identifier
		}
		v.name = fmt.Sprintf("%d %s %s %d%s", status, v.agent, identifier, k, older)
		return v
	}
	var winners [][]string
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0, 1}} {
		store, _ := migrated(t)
		conn := store.Conn()
		read := func() (names, firstStored []string) {
			rows, err := conn.Query(clickhouse.Context(ctx,
				clickhouse.WithSettings(clickhouse.Settings{"optimize_functions_to_subcolumns": 0})),
				`SELECT assumeNotNull(tupleElement(record, 'initiator_name')), tupleElement(record, 'initiator_identifier'), `+
					`toString(tupleElement(record, 'agent_id')),
					toString(tupleElement(agent, 'agent_id')), toString(tupleElement(initiator, 'agent_id')),
					toString(tupleElement(record, 'initiator')), toString(tupleElement(initiator, 'initiator')),
					toString(if(isNull(tupleElement(record, 'initiator_identifier')), 0, `+
					`reinterpretAsUInt128(sipHash128(assumeNotNull(tupleElement(record, 'initiator_identifier')))))),
					toString(bitAnd(bitShiftRight(state, 6), 15)), toString(first_stored_at)
				FROM runs FINAL ORDER BY run_id`)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var name, agent, ofAgent, ofInitiator, inRecord, inInitiator, number, status, first string
				var identifier *string
				if err := rows.Scan(&name, &identifier, &agent, &ofAgent, &ofInitiator, &inRecord, &inInitiator,
					&number, &status, &first); err != nil {
					t.Fatal(err)
				}
				shown := "-"
				if identifier != nil {
					shown = *identifier
				}
				if !strings.HasPrefix(name, status+" "+agent+" "+shown+" ") || ofAgent != agent || ofInitiator != agent ||
					inRecord != number || inInitiator != number {
					t.Errorf("order %v: %q with status %s, agents %s, %s, %s, numbers %s, %s of %s: columns of different versions",
						order, name, status, agent, ofAgent, ofInitiator, inRecord, inInitiator, number)
				}
				names, firstStored = append(names, name), append(firstStored, first)
			}
			return names, firstStored
		}
		var first []string
		for n, k := range order {
			batch, err := conn.PrepareBatch(ctx, "INSERT INTO runs ("+strings.Join(schema.RunColumns, ", ")+")")
			if err != nil {
				t.Fatal(err)
			}
			for run := range runs {
				v := versionOf(run, k)
				if err := batch.Append("acme", uuid.NewSHA1(uuid.Nil, fmt.Append(nil, run)), at, v.agent, "agent",
					(*uuid.UUID)(nil), v.status, v.identifier, v.name, new("internal"), v.updated); err != nil {
					t.Fatal(err)
				}
			}
			if err := batch.Send(); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				_, first = read()
			}
		}
		for range 2 {
			names, firstStored := read()
			if len(names) != runs || strings.Contains(strings.Join(names, "\n"), "older") {
				t.Errorf("order %v: %d runs, want the newest versions of %d: %q", order, len(names), runs, names)
			}
			if !slices.Equal(firstStored, first) {
				t.Errorf("order %v: first_stored_at moved from %v to %v", order, first, firstStored)
			}
			winners = append(winners, names)
			if err := conn.Exec(ctx, "OPTIMIZE TABLE runs FINAL"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, names := range winners[1:] {
		if fmt.Sprint(names) != fmt.Sprint(winners[0]) {
			t.Fatalf("the winners depend on the order of arrival or on merges:\n%v\n%v", winners[0], names)
		}
	}
}
