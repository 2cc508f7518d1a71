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
	model     string
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

// An inquiry sends questions and compares the answers with the oracle.
type inquiry struct {
	truth    *author
	verdicts *verdicts
	refused  *examples // answers that are none, where none is excused
	excused  func(answer) bool
	outcomes *counts
	took     latencies
}

// run sends a question to its last page, or to the fourth. It returns how many answers were compared.
func (i *inquiry) run(ctx context.Context, c *client, organization string, q question) (answered int) {
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
		i.took.add(a.took())
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
		seen := verdict{q.Model, difference(p.Rows, expected)}
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

// classes are the counts that an answer of a model belongs to.
func (l strategyLine) classes(model string) []string {
	s := l.Strategy
	reads := s.Reads
	if s.Delta != "" {
		reads += ", delta " + s.Delta
	}
	all := []string{reads, reads + of + model, "page: " + s.Page}
	if s.Refreshing {
		all = append(all, refreshingClass)
	}
	if s.Attempt > 1 {
		all = append(all, "a further attempt")
	}
	return all
}

const (
	refreshingClass = "a refresh in progress"
	of              = " of "
)

// demanded are the classes of which answers must be seen: of every strategy enough, of each with either model a fifth
// of that.
func demanded(enough int) map[string]int {
	least := map[string]int{"base": enough, refreshingClass: enough, "page: single": enough,
		"page: first": enough, "page: next": enough}
	for _, reads := range []string{wantRows, wantAggregates} {
		for _, delta := range []string{"none", "cached", "inline"} {
			class := reads + ", delta " + delta
			least[class] = enough
			for _, model := range []string{"agent_runs", "agent_user_activity"} {
				least[class+of+model] = enough / 5
			}
		}
	}
	return least
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
		for _, class := range line.classes(seen.model) {
			if c.of[class] == nil {
				c.of[class] = &classCount{}
			}
			c.of[class].answers++
			if seen.different != "" {
				c.of[class].different++
			}
		}
		if seen.different != "" {
			c.examples.add("%v: %s", line.classes(seen.model), seen.different)
		}
	}
}

func (c *classCounts) answers(class string) int {
	if c.of[class] == nil {
		return 0
	}
	return c.of[class].answers
}

// lacks is how many answers of a class are missing.
func (c *classCounts) lacks(class string, least int) int { return max(0, least-c.answers(class)) }

// lacking are the demanded classes of which there are not enough answers, the one that lacks most first.
func (c *classCounts) lacking(enough int) []string {
	least := demanded(enough)
	lacking := slices.Sorted(maps.Keys(least))
	lacking = slices.DeleteFunc(lacking, func(class string) bool { return c.lacks(class, least[class]) == 0 })
	slices.SortStableFunc(lacking, func(a, b string) int { return c.lacks(b, least[b]) - c.lacks(a, least[a]) })
	return lacking
}

// report adds a line for every class.
func (c *classCounts) report(s *soak, enough int) {
	demand := demanded(enough)
	for class := range demand {
		if c.of[class] == nil {
			c.of[class] = &classCount{}
		}
	}
	for _, class := range slices.Sorted(maps.Keys(c.of)) {
		least, at := demand[class], c.of[class]
		s.hold(class, fmt.Sprintf("%d answers, %d different", at.answers, at.different), fmt.Sprintf("at least %d, 0", least),
			at.answers >= least && at.different == 0)
	}
	s.none("answers that differ from the oracle's", &c.examples)
}
