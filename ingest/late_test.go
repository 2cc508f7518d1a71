package ingest_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// atEnd does something when all of a file has been read.
type atEnd struct {
	io.Reader
	do func()
}

func (r *atEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && r.do != nil {
		r.do()
		r.do = nil
	}
	return n, err
}

// Records of a person who is purged after they were read are rejected with the file and the line that they came from,
// in their order among all others; and a run that stops at the first reject stops there.
func TestPurgedAfterReading(t *testing.T) {
	for name, c := range map[string]struct {
		inserting, stop      bool
		first, second, want  []string
		runs, agents, others int64
	}{
		"before the insert": {false, false, []string{run(1, 1, "FAILED"), attribution(1), "{}", attribution(2)},
			[]string{"{}", attribution(1), agent(1, 1)}, []string{"a 2", "a 3", "b 1", "b 2"}, 1, 1, 1},
		"during the insert": {true, false, []string{"{}", attribution(1), attribution(2)},
			[]string{attribution(1), "{}", attribution(3)}, []string{"a 1", "a 2", "b 1", "b 2"}, 0, 0, 2},
		"and stop": {false, true, []string{run(1, 1, "FAILED"), attribution(2), attribution(1), run(2, 1, "FAILED")},
			[]string{attribution(1), agent(1, 1), attribution(3), "{}"}, []string{"a 3"}, 1, 0, 1},
		"during the insert, and stop": {true, true, []string{attribution(2), attribution(1), agent(1, 1)},
			[]string{attribution(1), "{}"}, []string{"a 2"}, 0, 1, 1},
	} {
		conn := olaptest.OpenStore(t).Conn()
		purgeOne := func() {
			if err := purge.Person("acme", "+15550101").Run(t.Context(), conn, func(purge.Step) {}); err != nil {
				t.Error(err)
			}
		}
		first, second := text("a", c.first...), text("b", c.second...)
		through := olaptest.Hold(conn)
		if c.inserting {
			through.BeforeInsert(schema.TableAttributions, purgeOne)
		} else {
			second.Open = func() (io.ReadCloser, error) {
				return io.NopCloser(&atEnd{strings.NewReader(strings.Join(c.second, "\n")), purgeOne}), nil
			}
		}
		first.Regular, second.Regular = true, true
		var rejects []ingest.Reject
		options := collect(through, &rejects, first, second)
		options.StopOnError = c.stop
		summary, err := ingest.Run(t.Context(), options)
		if last := c.want[len(c.want)-1]; c.stop != errors.Is(err, ingest.ErrRejected) || !c.stop && err != nil ||
			c.stop && !strings.Contains(err.Error(), strings.Replace(last, " ", " line ", 1)+": user_identifier: ") {
			t.Errorf("%s: ended with %v", name, err)
		}
		var got []string
		for _, r := range rejects {
			got = append(got, fmt.Sprint(r.Source, " ", r.Line))
			if !strings.Contains(r.Error, "was purged") && string(r.Record) != "{}" {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || summary.Rejected != int64(len(c.want)) {
			t.Errorf("%s: rejected %q, want %q; %+v", name, got, c.want, summary)
		}
		for table, want := range map[string]int64{"runs": c.runs, "agents": c.agents, "attributions": c.others} {
			var n uint64
			if err := conn.QueryRow(t.Context(), "SELECT count() FROM "+table).Scan(&n); err != nil || int64(n) != want {
				t.Errorf("%s: %d rows of %s, want %d, %v", name, n, table, want, err)
			}
		}
		if summary.Runs != c.runs || summary.Agents != c.agents || summary.Attributions != c.others {
			t.Errorf("%s: %+v", name, summary)
		}
	}
}
