package olap_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
)

// longest is one of the legal questions that take the most space: half a MiB in one spelling. It has rows if there are
// people of its number.
func longest(n int) olaptest.Query {
	q := olaptest.Query{Model: "agent_user_activity", Metrics: []string{"interaction_count"}, Range: january, Limit: 500,
		Dimensions: []string{"user_identifier"}}
	for f := range 8 {
		values := make([]string, 50)
		for i := range values {
			values[i] = strings.Repeat("\x01", 190) + fmt.Sprintf("%03d%02d%05d", f, i, n)
		}
		values[0] = "web"
		q.Filters = append(q.Filters, olaptest.Filter{Member: "source", Op: "in", Values: values})
	}
	return q
}

// What an engine remembers of the longest questions is what it counts, and nothing of their texts: of those asked
// once, and of those whose answers are cached.
func TestLongQuestionsAreNotRemembered(t *testing.T) {
	store := olaptest.OpenStore(t)
	var records olaptest.Records
	const people = 500
	for i := range people {
		records.Attributions = append(records.Attributions, runOn(i, 5, "").By(fmt.Sprintf("%0300d@example.com", i)))
	}
	olaptest.Load(t, store.Conn(), records)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	engine.CacheAnswers(64 << 20)
	ask(t, engine, "acme", longest(-1)) // connections and their buffers
	before := olaptest.Heap()
	const asked, answered = 40, 8
	for n := range asked {
		if got := ask(t, engine, "acme", longest(n)); len(got.Rows) != people {
			t.Fatalf("%d rows, want %d", len(got.Rows), people)
		}
	}
	if taken := olaptest.Heap() - before; taken > 4<<20 {
		t.Errorf("%d questions that were asked once take %d KiB", asked, taken>>10)
	}
	before = olaptest.Heap()
	counted := engine.CachedBytes()
	for range 2 {
		for n := range answered {
			ask(t, engine, "acme", longest(n))
		}
	}
	taken, counted := olaptest.Heap()-before, engine.CachedBytes()-counted
	t.Logf("%d answers take %d KiB and are counted as %d", answered, taken>>10, counted>>10)
	if counted < answered*people*300 || taken > int64(counted)*5/4+1<<20 {
		t.Errorf("%d answers take %d KiB and are counted as %d", answered, taken>>10, counted>>10)
	}
	runtime.KeepAlive(engine)
}
