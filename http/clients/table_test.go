package clients_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/olaptest"
)

const casesFile = folder + "testdata/cases.json"

// A table is the content of casesFile.
type table struct {
	text   string
	Now    time.Time
	Runs   []string // DAY PERSON STATUS [NAME]
	People struct {
		Day   string
		Count int
	}
	Cases []tableCase
}

type tableCase struct {
	Name     string
	Question tableQuestion
	Faults   map[int64]string
	outcome
	Refused     []string // words of what a client says
	Asked       int64
	Count       int // of rows, where they are not all written out
	First, Last []any
}

type tableQuestion struct {
	Metrics, Dimensions, Order []string
	Filters                    map[string][]string
	Start, End, Last, Timezone string
	Today, Yesterday, Weekdays bool
	Grain, Compare             string
	WeekStart                  string `json:"week_start"`
	Limit                      int
	Fill                       bool
}

// An outcome is what a client says of one case.
type outcome struct {
	Range   []string `json:"range"` // the first and the last day
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	Notes   []string `json:"notes"`
	More    bool     `json:"more"`
	Error   struct {
		Status      int `json:"status"`
		Code, Param string
	} `json:"error"`
	Usage string `json:"usage"` // why nothing was asked
}

// A client's program gets the address for each case, and returns what came of each.
type program func(t *testing.T, s *service, urls []string) []outcome

// All clients pass one table of cases.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	all := table{text: string(text)}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	s := serveEmpty(t, 10000)
	olaptest.Load(t, s.store.Conn(), all.records(t))
	t.Setenv("RUNLENS_URL", s.base)
	t.Setenv("RUNLENS_API_KEY", s.key)
	for language, run := range map[string]program{"go": all.runGo, "python": all.runPython,
		"typescript": all.runTypeScript} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			var urls []string
			var proxies []*faulty
			for _, c := range all.Cases {
				proxy := s.behind(c.faults(t))
				urls, proxies = append(urls, proxy.URL), append(proxies, proxy)
			}
			got := run(t, s, urls)
			if len(got) != len(all.Cases) {
				t.Fatalf("%d outcomes of %d cases", len(got), len(all.Cases))
			}
			for i, c := range all.Cases {
				if wrong := c.wrong(got[i], proxies[i].asked.Load()); wrong != "" {
					t.Errorf("%s: %s", c.Name, wrong)
				}
			}
		})
	}
}

func (all table) records(t *testing.T) (records olaptest.Records) {
	t.Helper()
	add := func(day, person, status string, name ...string) {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		run := runOn(1000+len(records.Runs), 1, status)
		run.CreatedAt = at.Add(12 * time.Hour)
		if person != "-" {
			run.Identifier = &person
		}
		if len(name) > 0 {
			run.Name = &name[0]
		}
		records.Runs = append(records.Runs, run)
	}
	for _, line := range all.Runs {
		fields := strings.Fields(line)
		add(fields[0], fields[1], fields[2], fields[3:]...)
	}
	for n := range all.People.Count {
		add(all.People.Day, fmt.Sprintf("p%04d@x.example", n), "COMPLETED")
	}
	return records
}

func (c tableCase) faults(t *testing.T) map[int64]func(http.ResponseWriter, *http.Request) {
	t.Helper()
	faults := map[int64]func(http.ResponseWriter, *http.Request){}
	for at, name := range c.Faults {
		faults[at] = map[string]func(http.ResponseWriter, *http.Request){
			"429": status(http.StatusTooManyRequests, "1"), "500": status(http.StatusInternalServerError, ""),
			"cut": hangUp, "half": breakOff, "expensive": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("x-runlens-reason", client.ReasonTooExpensive)
				status(http.StatusTooManyRequests, "1")(w, r)
			},
		}[name]
		if faults[at] == nil {
			t.Fatalf("%s: no fault %s", c.Name, name)
		}
	}
	return faults
}

// wrong says what is not as the table has it; empty if all is.
func (c tableCase) wrong(got outcome, asked int64) string {
	if asked != c.Asked {
		return fmt.Sprintf("asked %d times, want %d: %+v", asked, c.Asked, got)
	}
	if len(c.Refused) > 0 {
		for _, words := range c.Refused {
			if !strings.Contains(got.Usage, words) {
				return fmt.Sprintf("%q does not say %s", got.Usage, words)
			}
		}
		return ""
	}
	want := c.outcome
	if c.Count > 0 && len(got.Rows) == c.Count {
		want.Rows = [][]any{c.First, c.Last}
		got.Rows = [][]any{got.Rows[0], got.Rows[c.Count-1]}
	}
	for _, o := range []*outcome{&got, &want} { // nothing is written in several ways
		o.Rows, o.Notes = slices.Concat([][]any{}, o.Rows), slices.Concat([]string{}, o.Notes)
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("\n%+v, want\n%+v", got, want)
	}
	return ""
}

// runGo asks with the Go client.
func (all table) runGo(t *testing.T, s *service, urls []string) (outcomes []outcome) {
	for i, c := range all.Cases {
		q := report.Default()
		q.Metrics, q.Dimensions, q.Order = c.Question.Metrics, c.Question.Dimensions, c.Question.Order
		for _, member := range slices.Sorted(maps.Keys(c.Question.Filters)) {
			q.Filter = append(q.Filter, report.FilterText(member, c.Question.Filters[member]...))
		}
		q.Start, q.End, q.Last, q.Today, q.Yesterday = c.Question.Start, c.Question.End, c.Question.Last, c.Question.Today,
			c.Question.Yesterday
		q.Grain, q.Compare, q.Weekdays, q.Fill = c.Question.Grain, c.Question.Compare, c.Question.Weekdays, c.Question.Fill
		q.Limit, q.All = c.Question.Limit, c.Question.Limit == 0
		if q.All {
			q.Limit = report.Default().Limit
		}
		if c.Question.Timezone != "" {
			q.Timezone = c.Question.Timezone
		}
		if c.Question.WeekStart != "" {
			q.WeekStart = c.Question.WeekStart
		}
		asked := report.Run{Client: s.client(func(config *client.Config) { config.URL = urls[i] }), Question: q}
		outcomes = append(outcomes, outcomeOf(t, &asked, all.Now))
	}
	return outcomes
}

func outcomeOf(t *testing.T, run *report.Run, now time.Time) (o outcome) {
	t.Helper()
	if err := run.Check(now); err != nil {
		o.Usage = err.Error()
		return o
	}
	rows := []report.Row{}
	answer, err := run.Table(t.Context())
	if err == nil {
		for row, failed := range answer.Rows {
			if err = failed; failed == nil {
				rows = append(rows, row)
			}
		}
	}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		o.Error.Status, o.Error.Code, o.Error.Param = refused.Status, refused.Code, refused.Param
		return o
	}
	text, marshalled := json.Marshal(rows)
	if err != nil || marshalled != nil || json.Unmarshal(text, &o.Rows) != nil {
		t.Fatal(err, marshalled)
	}
	for _, column := range answer.Columns {
		o.Columns = append(o.Columns, column.Name)
	}
	f := run.Facts
	o.Range, o.Notes, o.More = []string{f.Range.Start, f.Range.End}, f.Notes, f.More
	return o
}

// runTypeScript asks with the TypeScript client, as it is compiled.
func (all table) runTypeScript(t *testing.T, s *service, urls []string) []outcome {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no node")
	}
	return asked(t, all, s, urls, "node", folder+"typescript/test/table.mjs")
}
