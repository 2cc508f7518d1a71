package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of processor times in /proc, the same on every platform that Go knows.
const clockTick = 10 * time.Millisecond

// processorTime is what the processes have used so far, in user and system mode. It is known on Linux only.
func processorTime(pids ...int) (total time.Duration, known bool) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, false
		}
		// The name, in parentheses, may hold anything; the fields after it count from 3.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		const user, system = 14 - 3, 15 - 3
		for _, field := range []int{user, system} {
			ticks, err := strconv.ParseInt(fields[field], 10, 64)
			if err != nil {
				return 0, false
			}
			total += time.Duration(ticks) * clockTick
		}
	}
	return total, true
}

// A usage is how much processor time the whole machine and this run have used so far.
type usage struct {
	at          time.Time
	total, ours time.Duration
	known       bool
}

// usage observes the processor time, to see how quiet the machine was. Of this run are this process, the
// children that have ended, the engine and the server.
func (b *bench) usage() usage {
	u := usage{at: time.Now()}
	text, err := os.ReadFile("/proc/stat")
	if err != nil || b.server == nil {
		return u
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		const label, idle, waiting, guest = 0, 4, 5, 9 // a guest's time is also a user's
		if i == label || i == idle || i == waiting || i >= guest {
			continue
		}
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return u
		}
		u.total += time.Duration(ticks) * clockTick
	}
	engine, err := b.engineProcess()
	if err != nil {
		return u
	}
	u.ours, u.known = processorTime(os.Getpid(), engine.PID, b.server.PID())
	var children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) == nil {
		u.ours += time.Duration(children.Utime.Nano() + children.Stime.Nano())
	}
	return u
}

// others is how many processors other processes used since an earlier observation.
func (u usage) others(since usage) (cores float64, known bool) {
	busy := (u.total - since.total) - (u.ours - since.ours)
	return max(0, busy.Seconds()/u.at.Sub(since.at).Seconds()), u.known && since.known
}
