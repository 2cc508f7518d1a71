package worker

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/ingest/source/postgres"
)

// However often the source's clock is set back under a worker, and however long answers take, a pass reads from before
// all that was committed since the last one, and nothing that is committed later is certain.
func TestHorizonOfAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	start := time.Now()
	after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	history := func(t *rapid.T) {
		type setBack struct{ at, by int }
		setBacks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) setBack {
			return setBack{rapid.IntRange(3001, 60_000).Draw(t, "at"), rapid.IntRange(1000, 60_000).Draw(t, "by")}
		}), 0, 3).Draw(t, "set back")
		clock := func(ms int) time.Time { // of the source
			shows := ms
			for _, s := range setBacks {
				if s.at <= ms {
					shows -= s.by
				}
			}
			return time.UnixMilli(int64(1_700_000_000_000 + shows))
		}
		type transaction struct{ begin, write, end int }
		transactions := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) transaction {
			begin := rapid.IntRange(0, 60_000).Draw(t, "begin")
			write := begin + rapid.IntRange(0, 20_000).Draw(t, "written after")
			return transaction{begin, write, write + rapid.IntRange(0, 20_000).Draw(t, "ended after")}
		}), 1, 5).Draw(t, "transactions")

		c := copier{worker: &worker{}}
		c.saved.Until = clock(-1)
		c.saved.Certain, c.horizon.floor = c.saved.Until, c.saved.Until
		const last = 110_000
		for asked, seen, pass := 0, -1, 0; asked < last; pass++ {
			read := asked + rapid.IntRange(0, 3000).Draw(t, "read after")
			answered := read + rapid.IntRange(0, 3000).Draw(t, "answered after")
			a := postgres.Activity{Now: clock(read)}
			for i, x := range transactions {
				if x.begin <= read && read < x.end {
					a.Open = append(a.Open, postgres.Transaction{Name: string(rune('a' + i)), Since: clock(x.begin)})
				}
			}
			by, _ := c.clock.Observe(after(asked), a.Now, after(answered))
			from := c.horizon.advance(a, c.changedSince(a, by, pass == 0))
			certain := c.horizon.certain()
			for _, x := range transactions {
				written := clock(x.write)
				if begun := clock(x.begin); begun.Before(written) {
					written = begun
				}
				if seen < x.end && x.end <= read && written.Before(from) {
					t.Fatalf("pass %d reads from %v, of what was committed since the last one %v", pass, from, written)
				}
				if x.end > read && x.write <= read && written.Before(certain) {
					t.Fatalf("after pass %d, %v is certain, and %v is not committed", pass, certain, written)
				}
			}
			seen, asked = read, answered+rapid.IntRange(0, 20_000).Draw(t, "until the next pass")
		}
	}
	for range 20 { // of a hundred each: only some have a clock that is set back in a transaction
		rapid.Check(t, history)
	}
}
