package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sync"
)

// mostPages is how many pages of one answer are read.
const mostPages = 4

// A verdict is what was seen of one answer.
type verdict struct {
	different string // what it should have been; empty where it is right
}

// verdicts are those of the answers whose strategy is not known yet, by request.
type verdicts struct {
	lock sync.Mutex
	of   map[string]verdict
}

func (v *verdicts) add(id string, seen verdict) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.of[id] = seen
}

// An inquiry asks questions and holds the answers against the oracle.
type inquiry struct {
	truth    *author
	verdicts *verdicts
	refused  *examples // answers that are none, where none is excused
	excused  func(answer) bool
	outcomes *counts
}

// ask asks a question to its last page, or to the fourth. It returns how many answers were compared.
func (i *inquiry) ask(ctx context.Context, c *client, organization string, q question) (answered int) {
	want, err := i.truth.truth.Answer(organization, q.asOracle())
	if err != nil {
		i.refused.add("the oracle: %v", err)
		return 0
	}
	if !q.pages() && len(q.Dimensions) > 0 {
		want = want[:min(len(want), q.rows())]
	}
	for range mostPages {
		a, err := c.query(ctx, q.body())
		if err != nil {
			if ctx.Err() == nil {
				i.refused.add("no answer: %v: %s", err, shorten(q))
			}
			return answered
		}
		i.outcomes.add(a.outcome())
		if a.status != http.StatusOK {
			if !i.excused(a) {
				i.refused.add("%d %s: %s", a.status, a.body, shorten(q))
			}
			return answered
		}
		var p page
		if err := json.Unmarshal(a.body, &p); err != nil {
			i.refused.add("%v: %s", err, a.body)
			return answered
		}
		expected := want[:min(len(want), q.rows())]
		want = want[len(expected):]
		seen := verdict{different: difference(p.Rows, expected)}
		if further := p.Cursor != nil; seen.different == "" && further != (len(want) > 0) {
			seen.different = fmt.Sprintf("a cursor: %v; further rows: %d", further, len(want))
		}
		if seen.different != "" {
			seen.different += " · " + organization + ", " + shorten(q)
		}
		i.verdicts.add(a.sentID, seen)
		answered++
		if p.Cursor == nil || seen.different != "" {
			return answered
		}
		q.Cursor = *p.Cursor
	}
	return answered
}

// difference says where rows are not the expected ones.
func difference(got, want [][]any) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("row %d of %d is missing: %v", i, len(want), want[i])
		case i >= len(want):
			return fmt.Sprintf("row %d of %d is too many: %v", i, len(got), got[i])
		case !reflect.DeepEqual(got[i], want[i]):
			return fmt.Sprintf("row %d is %v, not %v", i, got[i], want[i])
		}
	}
	return ""
}

// A strategyLine is the line of a request in a server's log.
type strategyLine struct {
	Msg       string
	RequestID string `json:"request_id"`
	Strategy  struct {
		Reads, Delta, Page string
		Refreshing         bool
		Attempt            int
	}
}

// classes are the counts that an answer belongs to.
func (l strategyLine) classes() []string {
	s := l.Strategy
	reads := s.Reads
	if s.Delta != "" {
		reads += ", delta " + s.Delta
	}
	all := []string{reads, "page: " + s.Page}
	if s.Refreshing {
		all = append(all, refreshingClass)
	}
	if s.Attempt > 1 {
		all = append(all, "a further attempt")
	}
	return all
}

const refreshingClass = "a refresh in progress"

// demanded are the classes of which enough answers must be seen.
var demanded = []string{
	"base", "base_runs_sent", "rollup_rows, delta none", "rollup_rows, delta cached", "rollup_rows, delta inline",
	"rollup_aggregates, delta none", "rollup_aggregates, delta cached", "rollup_aggregates, delta inline",
	refreshingClass, "page: single", "page: first", "page: next",
}

// A classCount is what was seen of one class.
type classCount struct{ answers, different int }

// classCounts count the answers of every class.
type classCounts struct {
	of       map[string]*classCount
	examples examples
}

// follow reads what was written to a server's log since an offset, and counts the answers whose lines it finds. It
// returns where it came to.
func (c *classCounts) follow(log string, offset int64, pending *verdicts) (int64, error) {
	f, err := os.Open(log)
	if err != nil {
		return offset, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return offset, err
	}
	pending.lock.Lock()
	defer pending.lock.Unlock()
	for lines := bufio.NewReader(f); ; {
		text, err := lines.ReadBytes('\n')
		if err != nil { // the end, or half a line
			return offset, nil
		}
		offset += int64(len(text))
		var line strategyLine
		if json.Unmarshal(text, &line) != nil || line.Msg != "request" {
			continue
		}
		seen, ours := pending.of[line.RequestID]
		if !ours {
			continue
		}
		delete(pending.of, line.RequestID)
		for _, class := range line.classes() {
			if c.of[class] == nil {
				c.of[class] = &classCount{}
			}
			c.of[class].answers++
			if seen.different != "" {
				c.of[class].different++
			}
		}
		if seen.different != "" {
			c.examples.add("%v: %s", line.classes(), seen.different)
		}
	}
}

func (c *classCounts) answers(class string) int {
	if c.of[class] == nil {
		return 0
	}
	return c.of[class].answers
}

// lacking are the demanded classes of which there are not enough answers, the rarest first.
func (c *classCounts) lacking(enough int) []string {
	lacking := slices.DeleteFunc(slices.Clone(demanded), func(class string) bool { return c.answers(class) >= enough })
	slices.SortFunc(lacking, func(a, b string) int { return c.answers(a) - c.answers(b) })
	return lacking
}

// report adds a line for every class.
func (c *classCounts) report(s *soak, enough int) {
	for _, class := range demanded {
		if c.of[class] == nil {
			c.of[class] = &classCount{}
		}
	}
	for _, class := range slices.Sorted(maps.Keys(c.of)) {
		least := 0
		if slices.Contains(demanded, class) {
			least = enough
		}
		at := c.of[class]
		s.hold(class, fmt.Sprintf("%d answers, %d different", at.answers, at.different), fmt.Sprintf("at least %d, 0", least),
			at.answers >= least && at.different == 0)
	}
	s.none("answers that differ from the oracle's", &c.examples)
}
