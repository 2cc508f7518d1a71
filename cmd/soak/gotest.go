package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// proveTests runs all tests with every case. `make test` tries samples of those that have many (olaptest.Sample).
func (s *soak) proveTests(ctx context.Context) error {
	var failed examples
	passed := 0
	err := s.goTest(ctx, func(line string) {
		switch {
		case strings.HasPrefix(line, "ok "):
			passed++
			s.say("%s", line)
		case strings.HasPrefix(line, "FAIL\t"), strings.HasPrefix(line, "--- FAIL"):
			failed.add("%s", line)
		}
	}, "-timeout", "60m", "./...", "github.com/runlens/runlens/http/client/...")
	s.see("packages whose tests pass", "%d", passed)
	s.none("tests that fail, and their packages", &failed)
	return err
}

// goTest runs go test, without results of before, and passes on each line of its output.
func (s *soak) goTest(ctx context.Context, each func(line string), args ...string) error {
	library, err := filepath.Abs(s.EngineLib) // go test runs in the package's folder
	if err != nil {
		return err
	}
	command := harness.GoTest(ctx, append([]string{"-count=1"}, args...)...)
	command.Env = append(os.Environ(), "RUNLENS_ENGINE_LIB="+library)
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for err == nil {
		var line string
		if line, err = lines.ReadString('\n'); line != "" {
			each(strings.TrimSpace(line))
		}
	}
	return command.Wait()
}
