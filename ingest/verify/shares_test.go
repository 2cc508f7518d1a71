package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

// What is compared in shares of the ids, because a group has more rows than fit into memory, is named as it is
// otherwise.
func TestDifferencesInShares(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	r := rand.New(rand.NewPCG(3, 4))
	lines := draw(r, "acme", 200)
	stored := slices.Clone(lines)
	r.Shuffle(len(stored), func(i, k int) { stored[i], stored[k] = stored[k], stored[i] })
	store(t, conn, append(stored[:len(stored)/2], draw(r, "globex", 5)...))
	every := func(o *Options) { o.MaxIDs = 1000 }
	usual := maxExplained
	t.Cleanup(func() { maxExplained = usual })
	whole := fmt.Sprintf("%+v", compare(t, conn, lines, every).Differences)
	maxExplained = 7
	if shares := fmt.Sprintf("%+v", compare(t, conn, lines, every).Differences); shares != whole || len(whole) < 1000 {
		t.Errorf("in shares\n%.3000s\nat once\n%.3000s", shares, whole)
	}
	for rows, want := range map[int64]uint{1: 0, 7: 0, 8: 1, 14: 1, 16: 2, 1000: 7} {
		n, bits := together([]Difference{{Source: Sum{Count: rows}}, {Store: Sum{Count: 7}}}, 7)
		if n != 1 || bits != want {
			t.Errorf("%d rows: %d groups in shares of %d bits, want 1 in %d", rows, n, bits, want)
		}
	}
}

// Ids need not be random anywhere: those of UUID version 1 end with the address of their machine, and those of SQL
// Server's NEWSEQUENTIALID as well. Other ones begin alike.
func TestSharesOfIDsThatAreAlike(t *testing.T) {
	for _, form := range []string{"%08x-0000-1000-8000-0242ac120002", "0242ac12-0002-4000-8000-%012x"} {
		var lines []string
		for n := range 1000 {
			lines = append(lines, line(map[string]any{
				"record": "agent", "organization_id": "acme", "agent_id": fmt.Sprintf(form, n), "name": "A",
				"updated_at": "2026-01-01T00:00:00Z",
			}))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // to fail, instead of dividing for ever
		defer cancel()
		ended := make(chan int64, 1)
		go func() {
			sums, _ := sumUp(ctx, Options{Source: Files{file(lines)}}, nil, 50, func(int64) {})
			var rows int64
			for _, sum := range sums.sums {
				rows += sum.Count
			}
			ended <- rows
		}()
		select {
		case rows := <-ended:
			if rows != 1000 {
				t.Errorf("%s: %d rows in all shares, want 1000", form, rows)
			}
		case <-ctx.Done():
			t.Fatalf("%s: the shares do not end", form)
		}
	}
}
