package clickhouse_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
)

// A thief listens where an engine listened before it died, keeps what it is sent, and answers each connection in the
// next of several ways.
type thief struct {
	net.Listener
	mu       sync.Mutex
	received bytes.Buffer
	accepted int
}

// thiefAnswers end the challenge in every way a program without the proof can.
var thiefAnswers = []string{
	"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"engine\"\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + strings.Repeat("0", 64),
	"HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1<<20),
	"no HTTP at all\r\n\r\n",
	"",
}

// steal listens at addr and answers until the test ends.
func steal(t *testing.T, addr string) *thief {
	t.Helper()
	th := &thief{}
	eventually(t, "the port of the dead engine is free", func() (ok bool) {
		var err error
		th.Listener, err = net.Listen("tcp", addr)
		return err == nil
	})
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := th.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { th.serve(conn) })
		}
	})
	t.Cleanup(func() {
		th.Close()
		serving.Wait()
	})
	return th
}

func (th *thief) serve(conn net.Conn) {
	defer conn.Close()
	th.mu.Lock()
	answer := thiefAnswers[th.accepted%len(thiefAnswers)]
	th.accepted++
	th.mu.Unlock()
	buffer := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buffer)
		th.mu.Lock()
		th.received.Write(buffer[:n])
		th.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := conn.Write([]byte(answer)); err != nil || answer == "" {
			return
		}
	}
}

func (th *thief) loot() (received string, accepted int) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.received.String(), th.accepted
}

// When an engine dies, any program may be given its port, and clients find it there until the engine has been started
// again elsewhere. They must not send it anything.
func TestWhoTakesThePortOfADeadEngineLearnsNothing(t *testing.T) {
	dir := dataDir(t)
	member := launch(t, dir)
	member.expect("ready")
	member.say("query") // leaves an idle connection in the pool
	member.expect("answer 2")
	engine := published(t, dir)
	var secrets struct{ Instance, Proof string }
	content, err := os.ReadFile(filepath.Join(dir, "engine", "address.json"))
	if err == nil {
		err = json.Unmarshal(content, &secrets)
	}
	if err != nil {
		t.Fatal(err)
	}
	password, err := os.ReadFile(filepath.Join(dir, "engine", "password"))
	if err != nil {
		t.Fatal(err)
	}

	// The member sleeps while the engine dies and the thief moves in. The engine lock, held here, keeps everybody
	// from starting another engine.
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := member.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	if err := syscall.Kill(engine.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	expectGone(t, engine.PID)
	lock, err := os.OpenFile(filepath.Join(dir, "engine", "engine.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	eventually(t, "the dead engine's lock is free", func() bool {
		return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	})
	thief := steal(t, engine.Addr)
	signal(syscall.SIGCONT)

	member.say("query")       // tries again for three seconds, and meets every answer of the thief
	member.expect("answer  ") // no version, but an error
	ctx, cancel := context.WithCancel(context.Background())
	joined := make(chan error, 1)
	go func() { // one that joins meets the thief too
		s, err := clickhouse.Open(ctx, config(dir))
		if err == nil {
			s.Close()
		}
		joined <- err
	}()
	_, before := thief.loot()
	eventually(t, "a process that joins meets the thief", func() bool {
		_, accepted := thief.loot()
		return accepted > before+len(thiefAnswers)
	})
	cancel()
	if err := <-joined; !errors.Is(err, context.Canceled) {
		t.Errorf("joining ended with %v, want %v", err, context.Canceled)
	}

	received, accepted := thief.loot()
	challenge := "GET /" + secrets.Instance + " HTTP/1.1\r\nHost: engine\r\n\r\n"
	if rest := strings.ReplaceAll(received, challenge, ""); rest != "" || accepted == 0 || received == "" {
		t.Errorf("the thief was sent more than challenges, over %d connections: %.300q", accepted, rest)
	}
	for name, secret := range map[string]string{
		"the password": string(password), "the proof": secrets.Proof, "a query": "SELECT",
		"the credentials": base64.StdEncoding.EncodeToString([]byte("runlens:" + string(password))),
	} {
		if strings.Contains(received, secret) {
			t.Errorf("the thief was sent %s", name)
		}
	}

	// The challenge of a dead engine is worth nothing: the next one has another.
	lock.Close()
	open(t, config(dir)) // returns once an engine answers
	member.say("query")
	member.expect("answer 2")
	if conn, err := net.DialTimeout("tcp", published(t, dir).Addr, patience); err != nil {
		t.Error(err)
	} else {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		conn.Write([]byte(challenge))
		answer := make([]byte, 64)
		if n, err := io.ReadFull(conn, answer); err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 404 ") {
			t.Errorf("the next engine answers the old challenge: %q, %v", answer[:n], err)
		}
	}
}
