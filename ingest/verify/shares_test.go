package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

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
