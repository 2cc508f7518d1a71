package olap_test

import (
	"context"
	"slices"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
)

const (
	// blockedAfter is how long a task executes nothing that is then taken to wait for another one, which is held.
	blockedAfter = 80 * time.Millisecond
	// pollsAfter is for how long a task may execute statements that is then taken to do so.
	pollsAfter = 3 * time.Second
	// stormPatience is how long nothing may happen at all.
	stormPatience = time.Minute
)

// A task is something in flight.
type task struct {
	name    string
	held    *olaptest.Held
	reached chan struct{} // closed when it is held
	open    chan struct{} // closed when it goes on
	done    chan struct{}
	until   int // the step after which it goes on
	freed   bool
	blocked bool
	goesOn  func() // called before it does
	ended   func()
}

func (s *storm) newTask(name string, held *olaptest.Held, ended func()) *task {
	s.paths[name]++
	return &task{name: name, held: held, reached: make(chan struct{}), open: make(chan struct{}),
		done: make(chan struct{}), goesOn: func() {}, ended: ended, until: s.now}
}

// in puts a task in flight: it is held before its statement of a number until some steps later, 0 for not at all, and
// sends one of them twice. ended is called when it has ended.
func (s *storm) in(name string, held *olaptest.Held, do, ended func()) {
	one := s.newTask(name, held, ended)
	held.Restart()
	repeated := 0
	if s.oneIn(3) {
		number := 1 + s.IntN(9)
		if s.oneIn(2) { // most of what has to be of one moment is read first
			number = 1 + s.IntN(number)
		}
		if name == "purge" || name == "rebuild" {
			number = 1 + s.IntN(25)
		}
		one.until = s.now + s.IntN(2)*(1+s.IntN(6))
		held.Before(number, func() { close(one.reached); <-one.open })
		if s.oneIn(4) {
			repeated = number
			held.Repeat(repeated)
		}
	} else if s.oneIn(4) {
		repeated = 1 + s.IntN(9)
		held.Repeat(repeated)
	}
	s.say("%s", name)
	s.tasks = append(s.tasks, one)
	go func() { defer close(one.done); do() }()
	s.await(one)
	select {
	case <-one.reached:
		s.say("%s is held", name)
		s.paths[name+", held"]++
		if one.until > s.now {
			s.paths[name+", delayed"]++
		}
	default:
	}
	if repeated > 0 && held.Sent() >= repeated {
		s.paths[name+", repeated"]++
	}
	s.collect()
}

// await waits until a task has ended, is held, or waits for one that is held.
func (s *storm) await(one *task) {
	began, idle := time.Now(), time.Now()
	reached := one.reached
	if one.freed {
		reached = nil
	}
	for {
		select {
		case <-one.done:
			return
		case <-reached:
			return
		case <-time.After(2 * time.Millisecond):
		}
		if one.held.Executing() > 0 {
			idle = time.Now()
		}
		one.blocked = s.parked() && (time.Since(idle) > blockedAfter || time.Since(began) > pollsAfter)
		if one.blocked {
			s.say("%s waits", one.name)
			s.paths[one.name+", waits"]++
			return
		}
		if time.Since(began) > stormPatience {
			s.Fatalf("history %d: %s hangs", s.seed, one.name)
		}
	}
}

// parked reports whether a task is held.
func (s *storm) parked() bool {
	for _, one := range s.tasks {
		select {
		case <-one.reached:
			if !one.freed {
				return true
			}
		default:
		}
	}
	return false
}

// letGo opens what holds a task, also for another one that comes to its statement when it has ended.
func (one *task) letGo() {
	if !one.freed {
		one.freed = true
		one.goesOn()
		close(one.open)
	}
}

// free lets a task go on, and whatever waits for it.
func (s *storm) free(one *task) {
	if one.freed {
		return
	}
	one.letGo()
	s.collect()
	for _, other := range append([]*task{one}, s.tasks...) {
		if other == one || other.blocked {
			s.await(other)
		}
	}
	s.collect()
}

// freeAll lets all tasks go on until they have ended: one that was freed before may wait for one that was not.
func (s *storm) freeAll() {
	for len(s.tasks) > 0 {
		one := s.tasks[max(0, slices.IndexFunc(s.tasks, func(t *task) bool { return !t.freed }))]
		s.free(one)
		s.await(one)
		s.collect()
	}
}

// collect ends the tasks that are done.
func (s *storm) collect() {
	for i := 0; i < len(s.tasks); {
		select {
		case <-s.tasks[i].done:
			one := s.tasks[i]
			s.tasks = append(s.tasks[:i:i], s.tasks[i+1:]...)
			one.letGo()
			one.ended()
			i = 0
		default:
			i++
		}
	}
}

// repair has damage repaired, which records that contradict each other leave where the clock was set back.
func (s *storm) repair() {
	for deadline := time.Now().Add(stormPatience); ; {
		state, err := snapshot.ReadLog(context.Background(), s.machines[0].held)
		if err == nil && len(state.Damaged) == 0 {
			return
		}
		if err == nil {
			_, err = s.machines[0].checker.Step(context.Background())
		}
		if err != nil || time.Now().After(deadline) {
			s.Fatalf("history %d: a damage stays: %+v, %v", s.seed, state.Damaged, err)
		}
	}
}
