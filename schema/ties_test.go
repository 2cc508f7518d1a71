package schema_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
)

// Of versions with the same updated_at, status, kind and initiator type one wins in every column that queries read,
// whatever the order of arrival, before merges and after them.
func TestTiesHaveOneWinnerInEveryColumn(t *testing.T) {
	ctx := context.Background()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	agents := []uuid.UUID{uuid.MustParse("ffffffff-0000-4000-8000-000000000001"),
		uuid.MustParse("00000000-0000-4000-8000-000000000002")}
	identifiers := []*string{nil, str("a"), str("b"), str("ada@example.com"), str("ada@example.org"),
		str("zoë@example.com"), str("")}
	const runs = 300
	// What distinguishes versions: the name says which agent and identifier it came with.
	type version struct {
		agent      uuid.UUID
		identifier *string
		name       string
	}
	versionOf := func(run, k int) version {
		v := version{agents[(run+k)%2*(run/7%2)], identifiers[(run/3+k*(1+run%5))%len(identifiers)], ""}
		identifier := "-"
		if v.identifier != nil {
			identifier = *v.identifier
		}
		v.name = fmt.Sprintf("%s %s %d", v.agent, identifier, k)
		return v
	}
	var winners [][]string
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0, 1}} {
		store, db := open(t)
		if err := schema.Own.Up(ctx, db); err != nil {
			t.Fatal(err)
		}
		conn := store.Conn()
		for _, k := range order {
			batch, err := conn.PrepareBatch(ctx, "INSERT INTO runs ("+strings.Join(schema.RunColumns, ", ")+")")
			if err != nil {
				t.Fatal(err)
			}
			for run := range runs {
				v := versionOf(run, k)
				if err := batch.Append("acme", uuid.NewSHA1(uuid.Nil, fmt.Append(nil, run)), at, v.agent, "agent",
					(*uuid.UUID)(nil), "RUNNING", v.identifier, v.name, str("internal"), at); err != nil {
					t.Fatal(err)
				}
			}
			if err := batch.Send(); err != nil {
				t.Fatal(err)
			}
		}
		read := func() (names []string) {
			rows, err := conn.Query(clickhouse.Context(ctx,
				clickhouse.WithSettings(clickhouse.Settings{"optimize_functions_to_subcolumns": 0})),
				`SELECT assumeNotNull(tupleElement(record, 'initiator_name')), tupleElement(record, 'initiator_identifier'), `+
					`toString(tupleElement(record, 'agent_id')),
					toString(tupleElement(agent, 'agent_id')), toString(tupleElement(initiator, 'agent_id')),
					toString(tupleElement(record, 'initiator')), toString(tupleElement(initiator, 'initiator')),
					toString(if(isNull(tupleElement(record, 'initiator_identifier')), 0, `+
					`reinterpretAsUInt128(sipHash128(assumeNotNull(tupleElement(record, 'initiator_identifier'))))))
				FROM runs FINAL ORDER BY run_id`)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var name, agent, ofAgent, ofInitiator, inRecord, inInitiator, number string
				var identifier *string
				if err := rows.Scan(&name, &identifier, &agent, &ofAgent, &ofInitiator, &inRecord, &inInitiator,
					&number); err != nil {
					t.Fatal(err)
				}
				shown := "-"
				if identifier != nil {
					shown = *identifier
				}
				if !strings.HasPrefix(name, agent+" "+shown+" ") || ofAgent != agent || ofInitiator != agent ||
					inRecord != number || inInitiator != number {
					t.Errorf("order %v: %q with agents %s, %s, %s, numbers %s, %s of %s: columns of different versions", order, name,
						agent, ofAgent, ofInitiator, inRecord, inInitiator, number)
				}
				names = append(names, name)
			}
			return names
		}
		unmerged := read()
		if len(unmerged) != runs {
			t.Errorf("%d runs, want %d", len(unmerged), runs)
		}
		if err := conn.Exec(ctx, "OPTIMIZE TABLE runs FINAL"); err != nil {
			t.Fatal(err)
		}
		winners = append(winners, unmerged, read())
	}
	for _, names := range winners[1:] {
		if fmt.Sprint(names) != fmt.Sprint(winners[0]) {
			t.Fatalf("the winners depend on the order of arrival or on merges:\n%v\n%v", winners[0], names)
		}
	}
}
