package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

// stormTotal is the last line of the test's output.
var stormTotal = regexp.MustCompile(`(\d+) histories, (\d+) answers, (\d+) compared`)

// stormWrong is in lines that say what is wrong.
var stormWrong = regexp.MustCompile(`FAIL|history|run it again`)

// proveStorm plays random histories of a store that two servers answer from, with held, delayed and repeated
// statements: the test of that name, which the binary is not needed for, with many histories.
func (s *soak) proveStorm(ctx context.Context) error {
	var wrong examples
	total := []string{"", "0", "0", "0"}
	err := s.goTest(ctx, func(line string) {
		if found := stormTotal.FindStringSubmatch(line); found != nil {
			total = found
		} else if stormWrong.MatchString(line) {
			wrong.add("%s", line)
		} else {
			s.say("%s", line)
		}
	}, "./olap", "-run", "^TestStorm$", "-v", "-timeout", "0", "-args", "-storm.histories", strconv.Itoa(s.Histories),
		"-storm.seed", strconv.FormatUint(s.Seed%1e9, 10))
	s.hold("histories with two servers", total[1], fmt.Sprint(s.Histories), total[1] == fmt.Sprint(s.Histories))
	s.see("answers", "%s, of them %s compared with the oracle", total[2], total[3])
	s.none("answers that differ from the oracle's, and paths not taken", &wrong)
	return err
}
