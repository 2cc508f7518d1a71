package clickhouse_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The engine of a test process removes its directory however that process ended.
func TestEphemeralEngineLeavesNothingBehind(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := filepath.Join(dataDir(t), "data")
		p := launch(t, dir, "ephemeral")
		p.expect("ready")
		pid := enginePID(t, dir)
		if killed {
			p.kill()
		} else {
			p.say("close")
			p.expect("closed <nil>")
		}
		expectGone(t, pid)
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("killed %v: the directory is still there (%v)", killed, err)
		}
	}
}
