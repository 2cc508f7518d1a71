package olap_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
)

// Spec section 8: 8 filters of 50 values of 200 characters, in the spellings that take the most space on the way to
// ClickHouse.
func TestTheLargestQueryIsAnswered(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	for _, character := range []string{"😀", `\`, "'", "\n", "\x00", "%"} {
		t.Run(fmt.Sprintf("%q", character), func(t *testing.T) {
			q := olaptest.Query{Model: "agent_user_activity", Metrics: []string{"interaction_count"}, Range: january}
			for _, member := range []string{"source", "user_domain", "activity_type", "run_initiation_type", "agent_id",
				"source", "agent_id", "user_domain"} {
				values := make([]string, 50)
				for i := range values {
					values[i] = strings.Repeat(character, 199) + string(rune('0'+i))
				}
				q.Filters = append(q.Filters, olaptest.Filter{Member: member, Op: "in", Values: values})
			}
			if r := ask(t, engine, "acme", q); r.Rows[0][0] != 0.0 {
				t.Errorf("got %v", r.Rows)
			}
		})
	}
}

// Whatever characters a value has, it arrives in ClickHouse as it is: in a filter and in a cursor.
func TestValuesArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	n := 0
	checkProperty(t, 1, func(t *rapid.T) {
		n++
		organization := fmt.Sprintf("org-%d", n)
		source := rapid.StringN(1, 64, 256).Draw(t, "source")
		var records olaptest.Records
		for i, s := range []string{source, source + "a", source + "b"} {
			record := runOn(i, 5, "").By("ada@example.com")
			record.Organization, record.Source = organization, s
			records.Attributions = append(records.Attributions, record)
		}
		olaptest.Load(t, store.Conn(), records)
		q := olaptest.Query{Model: "agent_user_activity", Metrics: []string{"interaction_count"},
			Dimensions: []string{"source"}, Range: january, Limit: 1}
		if rows := all(t, engine, organization, q); len(rows) != 3 || rows[0][0] != source {
			t.Fatalf("pages %q, want three that begin with %q", rows, source)
		}
		q.Filters = []olaptest.Filter{{Member: "source", Op: "eq", Value: source}}
		if rows := all(t, engine, organization, q); len(rows) != 1 || rows[0][0] != source {
			t.Fatalf("filtered %q, want %q alone", rows, source)
		}
	})
}
