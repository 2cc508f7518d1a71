package snapshot

import (
	"testing"

	"github.com/runlens/runlens/schema"
)

// Where the user may not read how many inserts failed, nothing is taken for unchanged.
func TestUnknownFailuresAreNeverTheSame(t *testing.T) {
	all := Records{Organization: "acme"}
	for of, want := range map[failures]bool{{}: true, {n: 7}: true, {unknown: true}: false} {
		if s := (Snapshot{failed: of, of: map[schema.OrganizationID]counts{"acme": {}}}); s.Same(s, all) != want {
			t.Errorf("%+v: the snapshots are the same: %t, want %t", of, !want, want)
		}
	}
}
