package maintain

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/prometheus/client_golang/prometheus"
)

type step func(ctx context.Context) (more bool, err error)

// A script is a task whose steps take given times.
type script struct {
	steps  []step
	begins []time.Duration // since the first step
	began  time.Time
	done   context.CancelFunc
}

func (s *script) Step(ctx context.Context) (bool, error) {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.begins = append(s.begins, time.Since(s.began))
	if len(s.begins) > len(s.steps) {
		s.done()
		return false, nil
	}
	return s.steps[len(s.begins)-1](ctx)
}

func (*script) Describe(chan<- *prometheus.Desc) {}
func (*script) Collect(chan<- prometheus.Metric) {}

func takes(d time.Duration, more bool, err error) step {
	return func(context.Context) (bool, error) {
		time.Sleep(d)
		return more, err
	}
}

// hangs ends with its context only.
func hangs(ctx context.Context) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// Maintenance goes on within 30 s of a step that hung or failed, whatever that one took, and a step that hangs ends
// after ten minutes. At a share of 0.2 a step is followed by four times its time; what is over 30 s of that, up to 5
// minutes, is added to the pauses of later steps.
func TestPauses(t *testing.T) {
	const s, m = time.Second, time.Minute
	for name, c := range map[string]struct {
		steps []step
		want  []time.Duration // when each step begins, and the one after the last
	}{
		"nothing to do": {[]step{takes(0, false, nil), takes(0, false, nil)}, []time.Duration{0, s, 2 * s}},
		"short steps": {[]step{takes(2*s, true, nil), takes(s/10, true, nil)},
			[]time.Duration{0, 10 * s, 10*s + s/2}},
		"hangs": {[]step{hangs, takes(0, true, nil)}, []time.Duration{0, 10*m + 30*s, 10*m + 31*s - s}},
		"fails late": {[]step{takes(8*m, false, errors.New("no answer")), takes(s, true, nil)},
			[]time.Duration{0, 8*m + 30*s, 8*m + 35*s}},
		"fails at once": {[]step{takes(0, false, errors.New("refused"))}, []time.Duration{0, s}},
		"a long step is paid": {[]step{takes(10*s, true, nil), takes(s, true, nil), takes(s, true, nil)},
			[]time.Duration{0, 40 * s, 55 * s, 60 * s}},
		"not for ever": {append([]step{takes(5*m, true, nil)}, repeat(takes(0, true, nil), 11)...),
			[]time.Duration{0, 330 * s, 360 * s, 390 * s, 420 * s, 450 * s, 480 * s, 510 * s, 540 * s, 570 * s, 600 * s, 600 * s,
				600 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				task := &script{steps: c.steps, done: cancel}
				New("script", task, slog.New(slog.DiscardHandler), 0.2, time.Second).Run(ctx)
				if len(task.begins) != len(c.want) {
					t.Fatalf("steps began at %v, want %v", task.begins, c.want)
				}
				for i := range c.want {
					if task.begins[i] != c.want[i] {
						t.Fatalf("steps began at %v, want %v", task.begins, c.want)
					}
				}
			})
		})
	}
}

func repeat(s step, n int) (steps []step) {
	for range n {
		steps = append(steps, s)
	}
	return steps
}

// The deadline of a step depends on the driver: against a server that takes connections and never answers, a statement
// ends with its context. The native protocol's greeting ends with the time limit of dialling only, here a second.
func TestStatementsEndWithTheirContext(t *testing.T) {
	for _, protocol := range []clickhouse.Protocol{clickhouse.HTTP, clickhouse.Native} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for {
				if _, err := listener.Accept(); err != nil {
					return
				}
				cancel() // when the statement waits for an answer
			}
		}()
		conn, err := clickhouse.Open(&clickhouse.Options{Protocol: protocol, Addr: []string{listener.Addr().String()},
			DialTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		if err := conn.Exec(ctx, "SELECT 1"); err == nil {
			t.Errorf("%v: there was an answer", protocol)
		}
		if took := time.Since(began); took > 9*time.Second { // the time limit of an answer is 5 minutes
			t.Errorf("%v: it ended after %v", protocol, took)
		}
	}
}
