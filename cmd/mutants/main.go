// Command mutants proves that the tests see what they are there for. It breaks one line at a time on which the
// exactness of answers rests, and runs the tests that must fail then. The list is mutants.txt.
//
// Of each mutant it says which test killed it, or that it survived, no longer fits the code, or does not compile. It
// fails unless all were killed. The working tree is never changed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// A command is the command line.
type command struct {
	Only     []int         `placeholder:"N,…" help:"Only the mutants of these numbers. Default: all."`
	List     bool          `help:"Print the mutants and the properties that they break, and try none."`
	Parallel int           `default:"1" help:"How many are tried at once (${default})."`
	Timeout  time.Duration `default:"5m" help:"A mutant whose tests take longer counts as killed (${default})."`
}

func (command) Help() string {
	return `Run it from the top of the repository.

Example:
  go run ./cmd/mutants --only 3,4`
}

func main() {
	log.SetFlags(0)
	var c command
	kong.Parse(&c, kong.Name("mutants"),
		kong.Description("Break the lines that exactness rests on, one at a time, and see the tests fail."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx); err != nil {
		log.Fatal("mutants: ", err)
	}
}

func (c *command) run(ctx context.Context) error {
	mutants, err := parse(listed)
	if err != nil {
		return fmt.Errorf("mutants.txt: %w", err)
	}
	for _, number := range c.Only {
		if number < 1 || number > len(mutants) {
			return fmt.Errorf("there is no mutant %d: they have the numbers 1 to %d", number, len(mutants))
		}
	}
	if len(c.Only) > 0 {
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !slices.Contains(c.Only, m.number) })
	}
	if c.List {
		for _, m := range mutants {
			fmt.Printf("%s\n   %s (%s %s)\n", m, m.property, m.pkg, m.tests)
		}
		return nil
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "runlens-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &tester{root: root, dir: dir, timeout: c.Timeout, without: map[string]outcome{}}
	return c.try(ctx, t, mutants)
}

// try tries mutants and prints what became of each.
func (c *command) try(ctx context.Context, t *tester, mutants []mutant) error {
	began := time.Now()
	killed := 0
	var mu sync.Mutex
	var tried sync.WaitGroup
	slots := make(chan struct{}, max(1, c.Parallel))
	for _, m := range mutants {
		slots <- struct{}{}
		tried.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			start := time.Now()
			by, err := t.kill(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			verdict := "killed by " + by
			if err != nil {
				verdict = "NOT KILLED: " + err.Error()
			} else {
				killed++
			}
			fmt.Printf("%s\n   %s\n   %s (%s)\n", m, m.property, verdict, time.Since(start).Round(time.Second))
		})
	}
	tried.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("%d of %d mutants killed in %s\n", killed, len(mutants), time.Since(began).Round(time.Second))
	if killed < len(mutants) {
		return fmt.Errorf("%d of %d mutants were not killed", len(mutants)-killed, len(mutants))
	}
	return nil
}
