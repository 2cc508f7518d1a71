// Package trap kills a process at a chosen point of its work: before or after a system call, chosen by its name
// and its arguments. It needs strace and the right to trace the process.
package trap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrUnable is returned where there is no strace or this user may not trace the process.
var ErrUnable = errors.New("there is no strace, or it may not trace")

// A Point is a moment in the work of a process.
type Point struct {
	Name string
	// Steps are calls that follow each other, as strace prints them: name, descriptors with their paths, arguments.
	// The process is killed at the last one. The others are made by the same thread.
	Steps []*regexp.Regexp
	// Nth is which of the calls that match the first step counts, from 1.
	Nth int
	// After is for the moment when the last call has been made, instead of the one when it is about to be.
	After bool

	Watch []string      // names of the calls that are watched
	Delay []string      // those of them that are delayed, so that there is time to kill
	For   time.Duration // how long
	Files string        // watch only calls on files of this pattern (filepath.Match) that exist; empty for all
}

// attachPatience is how long strace may take to attach to all threads.
const attachPatience = 20 * time.Second

// A Trap waits for its point.
type Trap struct {
	pid    int
	strace *exec.Cmd
	calls  calls
	sprung chan struct{} // closed when the process was killed
	end    func()
	over   chan struct{} // closed when strace has ended and all of its output is read
}

// Able returns ErrUnable, wrapped, where no process can be trapped on this machine. It tries it on a process that does
// nothing.
func Able(ctx context.Context) error {
	idle := exec.Command("sleep", "60")
	if err := idle.Start(); err != nil {
		return err
	}
	defer func() {
		_ = idle.Process.Kill()
		_ = idle.Wait() // it was killed
	}()
	set, err := Set(ctx, idle.Process.Pid, Point{Nth: 1, Watch: []string{"rename"}, Delay: []string{"rename"},
		For: time.Millisecond})
	if err == nil {
		set.Release()
	}
	return err
}

// Set has a process killed with SIGKILL at a point, and returns when that is sure to happen. The error is ErrUnable
// where it cannot be done on this machine.
func Set(ctx context.Context, pid int, p Point) (*Trap, error) {
	program, err := exec.LookPath("strace")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnable, err)
	}
	files, err := filepath.Glob(p.Files)
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	delay := "delay_enter"
	if p.After {
		delay = "delay_exit"
	}
	args := []string{"-f", "-y", "-s", "16", "-p", fmt.Sprint(pid), "-o", "/proc/self/fd/3",
		"-e", "trace=" + strings.Join(p.Watch, ","),
		"-e", fmt.Sprintf("inject=%s:%s=%d", strings.Join(p.Delay, ","), delay, p.For.Microseconds())}
	for _, file := range files {
		args = append(args, "-P", file)
	}
	t := &Trap{pid: pid, strace: exec.Command(program, args...), sprung: make(chan struct{}), over: make(chan struct{})}
	t.end = sync.OnceFunc(t.release)
	t.calls = calls{point: p, at: map[string]*progress{}}
	t.strace.ExtraFiles = []*os.File{in}
	said, err := t.strace.StderrPipe()
	if err == nil {
		err = t.strace.Start()
	}
	in.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	go t.read(out)
	if err := t.attached(ctx, said); err != nil {
		t.Release()
		return nil, err
	}
	return t, nil
}

// attached waits until strace has attached to the process.
func (t *Trap) attached(ctx context.Context, said io.Reader) error {
	answer := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			switch text := lines.Text(); {
			case strings.Contains(text, "Operation not permitted"):
				answer <- fmt.Errorf("%w: %s", ErrUnable, text)
			case strings.Contains(text, fmt.Sprintf("Process %d attached", t.pid)):
				answer <- nil
			default:
				continue
			}
			break
		}
		for lines.Scan() { // so that strace does not wait for a reader
		}
		select {
		case answer <- errors.New("strace ended before it had attached"):
		default:
		}
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(attachPatience):
		return errors.New("strace did not attach in time")
	}
}

// read follows strace's output, of which a call's beginning comes before the call is made.
func (t *Trap) read(out *os.File) {
	defer close(t.over)
	defer out.Close()
	spring := sync.OnceFunc(func() {
		_ = syscall.Kill(t.pid, syscall.SIGKILL) // an error says that it is gone already
		close(t.sprung)
	})
	buffer, line := make([]byte, 64<<10), ""
	for {
		n, err := out.Read(buffer)
		line += string(buffer[:n])
		for {
			end := strings.IndexByte(line, '\n')
			if end < 0 {
				break
			}
			if t.calls.see(line[:end], true) {
				spring()
			}
			line = line[end+1:]
		}
		if line != "" && t.calls.see(line, false) {
			spring()
		}
		if err != nil {
			return
		}
	}
}

// Sprung is closed when the process was killed.
func (t *Trap) Sprung() <-chan struct{} { return t.sprung }

// PID is the process.
func (t *Trap) PID() int { return t.pid }

// Release ends the trap, whether it has sprung or not, and reports whether it killed the process at its point: not
// before it had been released, and not later than at the point. It may be called again.
func (t *Trap) Release() (hit bool) {
	t.end()
	select {
	case <-t.sprung:
		return !t.calls.late
	default:
		return false
	}
}

// release has strace detach and end.
func (t *Trap) release() {
	_ = t.strace.Process.Signal(syscall.SIGTERM) // it detaches
	select {
	case <-t.over:
	case <-time.After(attachPatience):
		_ = t.strace.Process.Kill()
		<-t.over
	}
	_ = t.strace.Wait() // its status says only how it was ended
}
