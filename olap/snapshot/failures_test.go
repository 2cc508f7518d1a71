package snapshot

import "testing"

// Where the user may not read how many inserts failed, nothing is taken for unchanged.
func TestUnknownFailuresAreNeverTheSame(t *testing.T) {
	for of, want := range map[failures]bool{{}: true, {n: 7}: true, {unknown: true}: false} {
		if c := (Counters{failed: of}); c.Same(c) != want {
			t.Errorf("%+v: the counters are the same: %t, want %t", of, !want, want)
		}
		if v := (Version{failed: of}); v.Same(v) != want {
			t.Errorf("%+v: the version is the same: %t, want %t", of, !want, want)
		}
	}
	if (Counters{failed: failures{n: 1}}).Same(Counters{failed: failures{n: 2}}) {
		t.Error("the counters are the same although an insert failed")
	}
}
