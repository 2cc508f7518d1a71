package worker

import (
	"testing"
	"time"

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
			from = h.advance(a)
		}
		if !from.Equal(at(c.from)) || !h.certain().Equal(at(c.certain)) {
			t.Errorf("%s: reads from %d, certain until %d, want %d and %d", name, from.Unix(), h.certain().Unix(), c.from,
				c.certain)
		}
	}
}
