package harness

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnly(t *testing.T) {
	known := []string{"query", "ingest"}
	if err := (Only{"query"}).Check("scenario", known); err != nil {
		t.Error(err)
	}
	err := Only{"query", "speed"}.Check("scenario", known)
	if err == nil || err.Error() != `--only: there is no scenario "speed"; there are query, ingest` {
		t.Errorf("error %v", err)
	}
	if !(Only{}).Has("query") || !(Only{"query"}).Has("query") || (Only{"query"}).Has("ingest") {
		t.Error("other parts run than those that were asked for")
	}
}

// A run's folder goes alone while another run is in the same parent, and the last one takes the parent along.
func TestFolders(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "parent")
	one, err := NewFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewFolder(parent)
	if err != nil || two.Dir == one.Dir || !filepath.IsAbs(two.Dir) {
		t.Fatalf("%+v, %+v, %v", one, two, err)
	}
	one.Remove()
	if _, err := os.Stat(one.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
	if _, err := os.Stat(two.Dir); err != nil {
		t.Errorf("another run's folder: %v", err)
	}
	two.Remove()
	if _, err := os.Stat(parent); !os.IsNotExist(err) {
		t.Errorf("the parent is there: %v", err)
	}
	Folder{}.Remove()
}

func TestPoll(t *testing.T) {
	asked := 0
	if !Poll(t.Context(), time.Minute, 0, func() bool { asked++; return asked == 3 }) || asked != 3 {
		t.Errorf("asked %d times", asked)
	}
	if Poll(t.Context(), 0, time.Millisecond, func() bool { return false }) {
		t.Error("what never happens is done")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if Poll(ctx, time.Minute, time.Minute, func() bool { return false }) {
		t.Error("done after the end of the context")
	}
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		Poll(t.Context(), time.Hour, time.Millisecond, func() bool { asked++; return time.Since(began) > time.Minute })
		if took := time.Since(began); asked > 120 || took > 66*time.Second {
			t.Errorf("asked %d times in a minute, for %v", asked, took)
		}
	})
}
