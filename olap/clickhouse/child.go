package clickhouse

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/runlens/runlens/olap/clickhouse/native"
)

const (
	// childVariable is set for the engine's process alone: a childTask in JSON.
	childVariable = "RUNLENS_ENGINE_CHILD"

	// lockDescriptor is where the child finds the engine lock its parent took for it.
	lockDescriptor = 3

	// exitInterval is how often the engine's session is told to end until it does.
	exitInterval = 50 * time.Millisecond

	// endTimeout bounds the engine's own orderly end, after which its process just exits. Nothing
	// acknowledged is lost by that.
	endTimeout = 10 * time.Second
)

// A childTask says what a child runs: the engine of Dir, or with Dir empty a probe that prints the library's version.
type childTask struct {
	Library     string
	Dir         string
	RemoveDir   string // removed after the engine's end, when not empty
	Challenge   challenge
	Version     string
	MemoryBytes uint64
	Listen      string
}

// The engine is a child process that runs this very executable. An init function, and not a call in
// main, makes it the engine: test binaries have no main of ours, and a program that forgot the call
// would run itself a second time instead of an engine. Packages that this one imports are set up
// by then; nothing else has run.
func init() {
	text, ok := os.LookupEnv(childVariable)
	if !ok {
		return
	}
	os.Unsetenv(childVariable)
	var task childTask
	err := json.Unmarshal([]byte(text), &task)
	if err == nil {
		err = task.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// command returns the child process that will do the task. The child gets a session of its own, so
// that Ctrl-C on the terminal does not end it before its users have drained, and nothing of
// the environment it has no use for, secrets above all.
func (t childTask) command() (*exec.Cmd, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		executable = "/proc/self/exe" // also there when the file was replaced or removed since
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(executable)
	cmd.Args = []string{"runlens-engine"}
	cmd.Env = []string{childVariable + "=" + string(text), "TZ=UTC"}
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

func (t childTask) run() error {
	if t.Dir == "" {
		query, err := native.Load(t.Library)
		if err != nil {
			return err
		}
		version, err := query("--query", "SELECT version()")
		fmt.Print(strings.TrimSpace(version))
		return err
	}
	return t.runEngine()
}

// runEngine is the whole life of an engine. It holds the engine lock by descriptor 3 all the time,
// and ends by itself when no process holds the users lock any more; it then holds that one
// until it is gone, so nobody joins an engine that is ending.
func (t childTask) runEngine() error {
	syscall.CloseOnExec(lockDescriptor)
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM) // only its users decide when it ends
	// Else the Go runtime ends the process when a thread of the engine writes to a client that has gone.
	signal.Ignore(syscall.SIGPIPE)
	syscall.Umask(0o077) // the engine's own files are its owner's alone, too
	l := layout{t.Dir}
	password, err := l.readPassword()
	if err != nil {
		return err
	}
	settings := engineSettings{layout: l, challenge: t.Challenge, password: password, memoryBytes: t.MemoryBytes,
		listen: t.Listen}
	if err := settings.write(); err != nil {
		return err
	}
	client := engineClient{address: address{PID: os.Getpid(), Version: t.Version, challenge: t.Challenge},
		password: password}
	session, err := native.OpenTerminal()
	if err != nil {
		return err
	}
	ending := make(chan struct{})
	go t.endAfterUsers(l, session, ending)
	query, err := native.Load(t.Library)
	if err != nil {
		return err
	}
	go t.announce(l, client)
	err = confined(l.dir, t.Library, func() error {
		_, err := query("--path", l.store(), "--config-file", l.config(), "--log-level=warning",
			"--http_max_uri_size=8388608", "--interactive", "--disable_suggestion", "--history_file="+l.history(),
			"--query", "SYSTEM START LISTEN HTTP")
		return err
	})
	select {
	case <-ending:
		t.cleanUp(l)
		return nil
	default:
		return err
	}
}

// announce publishes the engine's address once it answers.
func (t childTask) announce(l layout, client engineClient) {
	for range time.Tick(lockPollInterval) {
		for _, addr := range listeningSockets() {
			client.address.Addr = addr
			if one, err := client.query("SELECT 1"); err == nil && one == "1" {
				if err := l.writeAddress(client.address); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				return
			}
		}
	}
}

// endAfterUsers waits for the last user to leave, and ends the engine's session and with it the engine.
func (t childTask) endAfterUsers(l layout, session *native.Terminal, ending chan<- struct{}) {
	if _, err := waitExclusive(l.usersLock()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	close(ending)
	time.AfterFunc(endTimeout, func() {
		t.cleanUp(l)
		os.Exit(0)
	})
	for range time.Tick(exitInterval) { // what is typed before the session has begun may be lost
		if err := session.Exit(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
}

func (t childTask) cleanUp(l layout) {
	os.Remove(l.address())
	if t.RemoveDir != "" {
		os.RemoveAll(t.RemoveDir)
	}
}

// listeningSockets returns the IPv4 addresses at which this process can be reached from this machine. The engine does
// not report the port that the system chose.
func listeningSockets() []string {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return nil
	}
	var addrs []string
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if listening, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN); err != nil ||
			listening == 0 {
			continue
		}
		if name, err := syscall.Getsockname(fd); err == nil {
			if v4, ok := name.(*syscall.SockaddrInet4); ok {
				ip := net.IP(v4.Addr[:])
				if ip.IsUnspecified() {
					ip = net.IPv4(127, 0, 0, 1)
				}
				addrs = append(addrs, net.JoinHostPort(ip.String(), strconv.Itoa(v4.Port)))
			}
		}
	}
	return addrs
}
