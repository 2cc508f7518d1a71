package postgrestest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process is one run of initdb or of the server's first process, the postmaster.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed once it has ended and was waited for
}

// spawn starts a binary whose output goes to the server's log. The process has a group of its own: an
// interrupt at the terminal is for the test, and the guard ends the server afterwards.
func (s *Server) spawn(binary string, args ...string) (*process, error) {
	log, err := os.Create(s.logFile())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := s.binaries.command(binary, args...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr.Setpgid = true
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{command: command, ended: make(chan struct{})}
	guardErr := s.guard.watch(command.Process.Pid)
	go func() {
		command.Wait() // its ProcessState has the result
		s.guard.forget()
		close(p.ended)
	}()
	if guardErr != nil {
		return nil, errors.Join(guardErr, s.kill(p))
	}
	return p, nil
}

// kill ends p and all its children at once, and returns when they are gone. The postmaster goes first: it
// would answer the end of a child with a recovery of its own.
func (s *Server) kill(p *process) error {
	children := childrenOf(p.command.Process.Pid)
	p.command.Process.Kill() // an error says that it has ended already
	killAll(s.survivors(children))
	<-p.ended // from here on nobody starts further children
	deadline := time.Now().Add(stopTimeout)
	for {
		left := s.survivors(children)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of the killed server are still there: %v", left)
		}
		killAll(left)
		time.Sleep(time.Millisecond) // they end by themselves; this only spares the processor
	}
}

func killAll(pids []int) {
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL) // an error says that it has ended already
	}
}

// survivors returns those of the server's processes that run. Children are in sessions of their own, so no
// process group names them. On Linux the data directory does, where all of them work; elsewhere
// it is those that were children before.
func (s *Server) survivors(children []int) (left []int) {
	if !hasProc() {
		for _, pid := range children {
			if syscall.Kill(pid, 0) == nil {
				left = append(left, pid)
			}
		}
		return left
	}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process that ended and was not waited for has no working directory, and needs no killing.
		if dir, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd")); err == nil && dir == s.data() {
			left = append(left, pid)
		}
	}
	return left
}

// childrenOf returns the children of a process where survivors cannot find them later. One that is started
// between this and the kill ends by itself when it notices that its postmaster is gone.
func childrenOf(parent int) (children []int) {
	if hasProc() {
		return nil
	}
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	for line := range bytes.Lines(out) {
		var pid, ppid int
		if n, _ := fmt.Sscan(string(line), &pid, &ppid); n == 2 && ppid == parent {
			children = append(children, pid)
		}
	}
	return children
}

func hasProc() bool {
	_, err := os.Readlink("/proc/self/cwd")
	return err == nil
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// log returns the end of what the last process wrote.
func (s *Server) log() string {
	const most = 4 << 10
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}

// Spilled returns the lines of the server's log that tell of temporary files, each with the line of its statement. It
// knows of the last start only.
func (s *Server) Spilled() ([]string, error) {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return nil, err
	}
	var spilled []string
	lines := strings.Split(string(text), "\n")
	for i, line := range lines[:len(lines)-1] {
		if strings.Contains(line, "temporary file:") {
			spilled = append(spilled, line+" "+lines[i+1])
		}
	}
	return spilled, nil
}

// removeSharedMemory removes the segment that a killed server leaves behind. A system has only a few
// thousands of them. A server that was shut down, or started again, has removed it itself, and
// with it the file that names it.
func removeSharedMemory(data string) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return
	}
	lines := strings.Split(string(text), "\n")
	const keyAndID = 6
	var key, id int
	if len(lines) <= keyAndID {
		return
	}
	if n, _ := fmt.Sscan(lines[keyAndID], &key, &id); n == 2 {
		unix.SysvShmCtl(id, unix.IPC_RMID, nil) // an error says that it is gone
	}
}

// A guard is a small process that outlives ours, however ours ends. When the pipe from us closes, it ends the
// server it last heard of and removes the directory. A server that it did not hear of notices within a
// minute that its directory is gone, and ends too.
type guard struct {
	command *exec.Cmd
	pipe    io.WriteCloser
}

const guardScript = `
server=
while read -r line; do server=$line; done
if [ -n "$server" ] && kill -QUIT "$server" 2>/dev/null; then
	tries=0
	while [ $tries -lt 100 ] && kill -0 "$server" 2>/dev/null; do tries=$((tries + 1)); sleep 0.1; done
fi
rm -rf "$1"
`

func newGuard(dir string) (*guard, error) {
	command := exec.Command("sh", "-c", guardScript, "runlens-postgres-guard", dir)
	command.Dir = "/"                                         // neither the test's directory nor the server's
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // spared by an interrupt at the terminal
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &guard{command: command, pipe: pipe}, command.Start()
}

// watch names the process to end. forget takes that back, before the system gives its number to another.
func (g *guard) watch(pid int) error {
	_, err := fmt.Fprintln(g.pipe, pid)
	return err
}

func (g *guard) forget() { io.WriteString(g.pipe, "\n") }

// end has the guard remove the directory and end.
func (g *guard) end() error {
	return errors.Join(g.pipe.Close(), g.command.Wait())
}
