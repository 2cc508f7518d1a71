package maintain

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"slices"
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

func (*script) Did() string { return "" }

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

// At a share of 0.2 a step is followed by four times its time; what is over 30 s of that, up to 5 minutes, is added to
// the pauses of later steps. Maintenance goes on within 30 s of a step that hung or failed, whatever that one took, and
// a step that hangs ends after ten minutes.
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
		"fails again and again": {append(repeat(takes(0, true, errors.New("refused")), 7), takes(0, true, nil),
			takes(0, true, errors.New("refused"))), []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s, 61 * s, 91 * s, 91 * s,
			92 * s}},
		"a long step is paid": {[]step{takes(10*s, true, nil), takes(s, true, nil), takes(s, true, nil)},
			[]time.Duration{0, 40 * s, 55 * s, 60 * s}},
		"a very long step is paid": {append([]step{takes(5*m, true, nil)}, repeat(takes(0, true, nil), 11)...),
			[]time.Duration{0, 1200 * s, 1230 * s, 1260 * s, 1290 * s, 1320 * s, 1350 * s, 1380 * s, 1410 * s, 1440 * s,
				1470 * s, 1500 * s, 1500 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				task := &script{steps: c.steps, done: cancel}
				New("script", task, slog.New(slog.DiscardHandler), 0.2, time.Second, answers).Run(ctx)
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

// However small the share is, its rest is no negative one.
func TestTheSmallestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		task := &script{steps: repeat(takes(time.Second, true, nil), 9), done: cancel}
		New("script", task, slog.New(slog.DiscardHandler), math.SmallestNonzeroFloat64, time.Second, answers).Run(ctx)
		if len(task.begins) != 1 {
			t.Errorf("steps began at %v, want one within an hour", task.begins)
		}
	})
}

// hurried is a script of which some steps are urgent.
type hurried struct {
	script
	urgent  []bool
	created time.Time
	since   time.Duration // when it is known that they are
}

func (h *hurried) Urgent(context.Context) bool {
	return len(h.begins) < len(h.urgent) && h.urgent[len(h.begins)] && time.Since(h.created) >= h.since
}

// Urgent steps take a share of their own, and wait for no rest that others are owed, which is taken after the next of
// those.
func TestUrgentStepsWaitForNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		task := &hurried{script: script{steps: repeat(takes(2*s, true, nil), 5), done: cancel},
			urgent: []bool{false, true, true, false, false, false}}
		New("script", task, slog.New(slog.DiscardHandler), 0.02, s, answers).Hurry(0.5, task.Urgent).Run(ctx)
		// Each of the others is owed 98 s.
		want := []time.Duration{0, 32 * s, 36 * s, 40 * s, 72 * s, 104 * s}
		if !slices.Equal(task.begins, want) {
			t.Errorf("steps began at %v, want %v", task.begins, want)
		}
	})
}

// An urgent step comes up in a pause of an hour and a half. It waits for 30 s at most, and what is left of the pause is
// taken after it.
func TestAnUrgentStepEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s, m = time.Second, time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		task := &hurried{script: script{steps: []step{takes(2*m, true, nil), takes(s, true, nil), takes(s, true, nil)},
			done: cancel}, urgent: []bool{false, true, false}, created: time.Now(), since: 10*m + 10*s}
		New("script", task, slog.New(slog.DiscardHandler), 0.02, s, answers).Hurry(0.5, task.Urgent).Run(ctx)
		// The first step is owed 98 minutes, 8.5 of which it has when the second one begins. The third is owed 49 s.
		want := []time.Duration{0, 10*m + 30*s, 10*m + 32*s, 10*m + 33*s + 89*m + 30*s + 49*s - mostOwed}
		if !slices.Equal(task.begins, want) {
			t.Errorf("steps began at %v, want %v", task.begins, want)
		}
	})
}

// A hanging task does not find out whether its next step is urgent.
type hanging struct{ script }

func (*hanging) Urgent(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

// Steps are taken where it is not known whether they are urgent.
func TestItIsNotKnownWhatIsUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		task := &hanging{script{steps: repeat(takes(s, true, nil), 2), done: cancel}}
		New("script", task, slog.New(slog.DiscardHandler), 0.2, s, answers).Hurry(0.5, task.Urgent).Run(ctx)
		if want := []time.Duration{0, 5*s + longestPause, 10*s + 2*longestPause}; !slices.Equal(task.begins, want) {
			t.Errorf("steps began at %v, want %v", task.begins, want)
		}
	})
}

// answers is a store that does.
func answers(context.Context) error { return nil }

// The share holds over time, whatever steps take, but for a rest of 5 minutes.
func TestTheShareHolds(t *testing.T) {
	for _, length := range []time.Duration{time.Millisecond, time.Second, 8 * time.Second, time.Minute, 9 * time.Minute} {
		for _, share := range []float64{0.02, 0.2, 0.9} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				const steps = 200
				task := &script{steps: repeat(takes(length, true, nil), steps), done: cancel}
				New("script", task, slog.New(slog.DiscardHandler), share, time.Millisecond, answers).Run(ctx)
				took := task.begins[steps] - task.begins[0]
				if worked := steps * length; float64(worked) > share*float64(took+mostOwed)+float64(time.Second) {
					t.Errorf("steps of %v: %v of %v at a share of %v", length, worked, took, share)
				}
			})
		}
	}
}

// The time in which the store did not answer, or the process did not run, is no work that is to be paid.
func TestStoppedTimeIsNotPaid(t *testing.T) {
	for what, c := range map[string]struct {
		takes, stopped, next time.Duration // next is when the next step begins
	}{
		"as soon as ever": {2 * time.Second, 0, 10 * time.Second},
		"a slow answer":   {10 * time.Second, 2 * time.Second, 40 * time.Second},
		// Stopped from 5 s on: of 487 s, 7 are work.
		"stopped":             {487 * time.Second, 480 * time.Second, 487*time.Second + 28*time.Second},
		"stopped to its end":  {485 * time.Second, time.Hour, 485*time.Second + 20*time.Second},
		"stopped, and failed": {485 * time.Second, time.Hour, 485*time.Second + 20*time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stopped := c.stopped
				alive := func(ctx context.Context) error {
					defer func() { stopped = 0 }()
					select {
					case <-time.After(stopped):
					case <-ctx.Done():
					}
					return ctx.Err()
				}
				ctx, cancel := context.WithCancel(t.Context())
				var err error
				if what == "stopped, and failed" {
					err = errors.New("no answer")
				}
				task := &script{steps: []step{takes(c.takes, true, err)}, done: cancel}
				New("script", task, slog.New(slog.DiscardHandler), 0.2, time.Second, alive).Run(ctx)
				if task.begins[1] != c.next {
					t.Errorf("the next step begins after %v, want %v", task.begins[1], c.next)
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
		if took := time.Since(began); took > time.Minute { // the time limit of an answer is 5 minutes
			t.Errorf("%v: it ended after %v", protocol, took)
		}
	}
}
