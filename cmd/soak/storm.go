package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// stormTotal is the last line of the test's output.
var stormTotal = regexp.MustCompile(`(\d+) histories, (\d+) answers, (\d+) compared`)

// stormWrong is in lines that say what is wrong.
var stormWrong = regexp.MustCompile(`FAIL|history|run it again`)

// proveStorm plays random histories of a store that two servers answer from, with held, delayed and repeated
// statements: the test of that name, which the binary is not needed for, with many histories.
func (s *soak) proveStorm(ctx context.Context) error {
	library, err := filepath.Abs(s.EngineLib) // go test runs in the package's folder
	if err != nil {
		return err
	}
	command := harness.GoTest(ctx, "./olap", "-run", "^TestStorm$", "-count", "1", "-v",
		"-timeout", "0", "-args", "-storm.histories", strconv.Itoa(s.Histories),
		"-storm.seed", strconv.FormatUint(s.Seed%1e9, 10))
	command.Env = append(os.Environ(), "RUNLENS_ENGINE_LIB="+library)
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	var wrong examples
	total := []string{"", "0", "0", "0"}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text := strings.TrimSpace(lines.Text())
		if found := stormTotal.FindStringSubmatch(text); found != nil {
			total = found
		} else if stormWrong.MatchString(text) {
			wrong.add("%s", text)
		} else {
			s.say("%s", text)
		}
	}
	err = command.Wait()
	s.hold("histories with two servers", total[1], fmt.Sprint(s.Histories), total[1] == fmt.Sprint(s.Histories))
	s.see("answers", "%s, of them %s compared with the oracle", total[2], total[3])
	s.none("answers that differ from the oracle's, and paths not taken", &wrong)
	return err
}
