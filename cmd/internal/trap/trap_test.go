package trap_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/trap"
)

// victimVariable makes this test binary a process that renames the files of a folder and reports each to a pipe.
const victimVariable = "RUNLENS_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimVariable); dir != "" {
		bufio.NewReader(os.Stdin).ReadString('\n') // until the trap is set
		for i := range files {
			os.Rename(filepath.Join(dir, fmt.Sprint("from", i)), filepath.Join(dir, fmt.Sprint("to", i)))
			fmt.Printf("done %d\n", i)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const files = 5

var renames = regexp.MustCompile(`^rename\w*\(.*/from[234]"`)

// Whether a process is killed before a call or after it, the calls before are made and no further one.
func TestPoints(t *testing.T) {
	renamed := []string{"rename", "renameat", "renameat2"}
	for _, c := range []struct {
		name  string
		point trap.Point
		hit   bool
		made  int // renames
	}{
		{"before", trap.Point{Nth: 1, Watch: renamed, Delay: renamed}, true, 2},
		{"after", trap.Point{Nth: 1, After: true, Watch: renamed, Delay: renamed}, true, 3},
		{"before the second", trap.Point{Nth: 2, Watch: renamed, Delay: renamed}, true, 3},
		{"after another call", trap.Point{Nth: 2, Watch: append(renamed, "write"), Delay: []string{"write"},
			Steps: []*regexp.Regexp{renames, regexp.MustCompile(`^write\(1<.*"done`)}}, true, 4},
		{"never", trap.Point{Nth: 4, Watch: renamed, Delay: renamed}, false, files},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.point.Steps == nil {
				c.point.Steps = []*regexp.Regexp{renames}
			}
			c.point.For = 50 * time.Millisecond
			dir := t.TempDir()
			for i := range files {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("from", i)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			victim := exec.Command(os.Args[0])
			victim.Env = append(os.Environ(), victimVariable+"="+dir)
			begin, err := victim.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			defer victim.Process.Kill()
			set, err := trap.Set(t.Context(), victim.Process.Pid, c.point)
			if errors.Is(err, trap.ErrUnable) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(begin)
			victim.Wait()
			if hit := set.Release(); hit != c.hit {
				t.Errorf("hit: %v", hit)
			}
			made, err := filepath.Glob(filepath.Join(dir, "to*"))
			if err != nil || len(made) != c.made {
				t.Errorf("%d files are renamed (%v), want %d", len(made), err, c.made)
			}
		})
	}
}
