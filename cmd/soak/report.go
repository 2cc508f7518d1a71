package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// A figure is one line of the table. Without a bound it only informs.
type figure struct {
	part, what, seen, bound string
	met                     bool
}

// A report is what a run saw.
type report struct {
	figures []figure
	notes   harness.Notes
}

func (r *report) add(f figure) { r.figures = append(r.figures, f) }

func (r *report) missed() bool {
	return slices.ContainsFunc(r.figures, func(f figure) bool { return f.bound != "" && !f.met })
}

// print shows the figures that have a bound as a table, and below it what else was seen.
func (r *report) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tFIGURE\tSEEN\tBOUND\t")
	for _, f := range r.figures {
		if f.bound != "" {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", f.part, f.what, f.seen, f.bound, harness.Verdict(f.met))
		}
	}
	table.Flush()
	fmt.Fprintln(out)
	for _, f := range r.figures {
		if f.bound == "" {
			fmt.Fprintf(out, "%s, %s: %s\n", f.part, f.what, f.seen)
		}
	}
	r.notes.Print(out)
}

// maxExamples bounds what is kept of things that should not happen.
const maxExamples = 8

// examples count what should not happen and keep the first ones that differ. They may be added to concurrently.
type examples struct {
	lock  sync.Mutex
	total int
	kept  []string
}

func (e *examples) add(format string, args ...any) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.total++
	text := fmt.Sprintf(format, args...)
	if len(e.kept) < maxExamples && !slices.Contains(e.kept, text) {
		e.kept = append(e.kept, text)
	}
}

func (e *examples) count() int {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.total
}

func (e *examples) first() []string {
	e.lock.Lock()
	defer e.lock.Unlock()
	return slices.Clone(e.kept)
}

// latencies are how long answers took. They may be added to concurrently.
type latencies struct {
	lock sync.Mutex
	all  []time.Duration
}

func (l *latencies) add(took time.Duration) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.all = append(l.all, took)
}

// quantile is the smallest time that at least the share q of all answers kept, and 0 without answers.
func (l *latencies) quantile(q float64) time.Duration {
	l.lock.Lock()
	defer l.lock.Unlock()
	if len(l.all) == 0 {
		return 0
	}
	slices.Sort(l.all)
	return l.all[min(int(q*float64(len(l.all))), len(l.all)-1)].Round(100 * time.Microsecond)
}

// counts are how often each outcome was seen. They may be added to concurrently.
type counts struct {
	lock sync.Mutex
	of   map[string]int
}

func (c *counts) add(outcome string) { c.addAll(outcome, 1) }

func (c *counts) addAll(outcome string, times int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[outcome] += times
}

// merge adds other counts, whose outcomes get a prefix.
func (c *counts) merge(prefix string, other *counts) {
	other.lock.Lock()
	defer other.lock.Unlock()
	for outcome, times := range other.of {
		c.addAll(prefix+outcome, times)
	}
}

func (c *counts) get(outcome string) int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.of[outcome]
}

// String lists the outcomes in alphabetical order.
func (c *counts) String() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	text := ""
	for _, outcome := range slices.Sorted(maps.Keys(c.of)) {
		text += fmt.Sprintf(", %s × %d", outcome, c.of[outcome])
	}
	return text[min(2, len(text)):]
}

// sum is how many outcomes there were.
func (c *counts) sum() (n int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, times := range c.of {
		n += times
	}
	return n
}
