package worker

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/ingest/source/postgres"
)

// What is known of the begin of a prepared transaction is what its session was, not what other prepared ones are.
func TestHorizonOfPreparedTransactions(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	session := func(since int, name string) postgres.Transaction {
		return postgres.Transaction{Name: name, Since: at(since)}
	}
	prepared := func(id string) postgres.Transaction {
		return postgres.Transaction{Name: postgres.Prepared + " " + id}
	}
	ended := func(t postgres.Transaction) postgres.Transaction {
		t.Ended = true
		return t
	}
	backup, writer, hidden := session(3, "backup"), session(15, "writer"), postgres.Transaction{Name: postgres.Hidden}
	for name, c := range map[string]struct {
		passes        []postgres.Activity
		from, certain int
	}{
		"in progress at the first pass": {[]postgres.Activity{
			{Now: at(10), Open: []postgres.Transaction{prepared("1")}},
		}, 0, 0},
		"a chain of them": {[]postgres.Activity{
			{Now: at(10), Open: []postgres.Transaction{prepared("1")}},
			{Now: at(20), Open: []postgres.Transaction{prepared("2")}},
			{Now: at(30), Open: []postgres.Transaction{prepared("3")}},
		}, 10, 20},
		"one that was a session": {[]postgres.Activity{
			{Now: at(20), Open: []postgres.Transaction{backup, writer}},
			{Now: at(30), Open: []postgres.Transaction{backup, prepared("1")}},
			{Now: at(40), Open: []postgres.Transaction{prepared("1")}},
		}, 3, 15},
		"one that was a session while both were read": {[]postgres.Activity{
			{Now: at(20), Open: []postgres.Transaction{writer}},
			{Now: at(30), Open: []postgres.Transaction{prepared("1"), ended(writer)}},
			{Now: at(40), Open: []postgres.Transaction{prepared("1")}},
		}, 15, 15},
		"one that was hidden": {[]postgres.Activity{
			{Now: at(20), Open: []postgres.Transaction{writer}},
			{Now: at(30), Open: []postgres.Transaction{hidden, writer}},
			{Now: at(40), Open: []postgres.Transaction{prepared("1")}},
		}, 15, 15},
	} {
		h := horizon{floor: at(0)}
		var from time.Time
		for _, a := range c.passes {
			from = h.advance(a, a.Now)
		}
		if !from.Equal(at(c.from)) || !h.certain().Equal(at(c.certain)) {
			t.Errorf("%s: reads from %d, certain until %d, want %d and %d", name, from.Unix(), h.certain().Unix(), c.from,
				c.certain)
		}
	}
}

// A pass never reads again what has been forgotten, where each transaction is shown at most an overlap after its begin:
// a record that breaks a rule would be rejected twice.
func TestWhatIsReadAgainIsRemembered(t *testing.T) {
	t.Parallel()
	const overlap = 5
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	rapid.Check(t, func(t *rapid.T) {
		type transaction struct{ begin, shown, end int }
		transactions := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) transaction {
			begin := rapid.IntRange(0, 60).Draw(t, "begin")
			shown := begin + rapid.IntRange(0, overlap).Draw(t, "shown after")
			return transaction{begin, shown, shown + rapid.IntRange(0, 30).Draw(t, "ended after")}
		}), 0, 5).Draw(t, "transactions")
		c := copier{worker: &worker{Options: Options{Overlap: overlap * time.Second}}}
		var forgotten time.Time
		now := 20
		for pass := range 12 {
			a := postgres.Activity{Now: at(now)}
			for i, x := range transactions {
				if x.shown <= now && now < x.end {
					a.Open = append(a.Open, postgres.Transaction{Name: string(rune('a' + i)), Since: at(x.begin)})
				}
			}
			from := c.horizon.advance(a, a.Now)
			if reads := back(from, c.Overlap); pass > 0 && reads.Before(forgotten) {
				t.Fatalf("pass %d at %d reads from %d, what lies before %d is forgotten", pass, now, reads.Unix(),
					forgotten.Unix())
			}
			if again := c.readAgain(a.Now, from, pass == 0); again.After(forgotten) {
				forgotten = again
			}
			now += rapid.IntRange(1, 10).Draw(t, "until the next pass")
		}
	})
}
