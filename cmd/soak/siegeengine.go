package main

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
)

// An engineWatch counts the engines of a data directory that ended.
type engineWatch struct {
	lock sync.Mutex
	seen []int // process ids, in the order in which the engines came
}

// watch reads which engine runs until ctx is done, and then closes the channel.
func (w *engineWatch) watch(ctx context.Context, product process.Product) (done chan struct{}) {
	done = make(chan struct{})
	w.note(product)
	go func() {
		defer close(done)
		for harness.Pause(ctx, samplePeriod) {
			w.note(product)
		}
		// One that has just ended is followed by the next one.
		harness.Pause(context.Background(), enginePatience)
		w.note(product)
	}()
	return done
}

// enginePatience is how long the next engine may take to publish itself at the end.
const enginePatience = 5 * time.Second

func (w *engineWatch) note(product process.Product) {
	e, err := product.Engine()
	if err != nil {
		return // it is being written
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(w.seen) == 0 || w.seen[len(w.seen)-1] != e.PID {
		w.seen = append(w.seen, e.PID)
	}
}

// ends is how many engines were followed by another one.
func (w *engineWatch) ends() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return max(0, len(w.seen)-1)
}

// halves are beginnings of requests, and what is none.
var halves = []string{
	"G", "GET", "POST / HT", "GET / HTTP/1.1\r\nHost: a",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nSELECT",
	"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nSEL", "\x16\x03\x01\x02\x00\x01", "\x00", "",
	"GET /?query=SELECT+1 HTTP/1.1\r\nX-ClickHouse-User: default\r\n", "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n",
}

const (
	halfEvery = 100 * time.Millisecond
	// halfHeld is the longest time that a connection stays open after half a request.
	halfHeld = 100 * time.Millisecond
)

func (g *siege) halfRequestsToEngine(ctx, end context.Context) {
	g.sendHalves(ctx, end, "half requests to the engine", func() string {
		e, _ := g.target.product.Engine() // without an address there is no connection
		return e.Addr
	})
}

func (g *siege) halfRequestsToAPI(ctx, end context.Context) {
	g.sendHalves(ctx, end, "half requests to the API", func() string { return g.target.server.Address })
}

// sendHalves sends half requests and goes away, as programs end: half of the connections are reset.
func (g *siege) sendHalves(ctx, end context.Context, kind string, address func() string) {
	random := rand.New(rand.NewPCG(g.Seed, uint64(len(kind))))
	for n := 0; harness.Pause(end, halfEvery); n++ {
		connection, err := dialTCP(address())(ctx)
		if err != nil {
			g.attacks.add(kind + ": no connection")
			continue
		}
		_, err = connection.Write([]byte(halves[n%len(halves)]))
		harness.Pause(end, time.Duration(random.Int64N(int64(halfHeld))))
		if tcp, ok := connection.(*net.TCPConn); ok && random.IntN(2) == 0 {
			tcp.SetLinger(0)
		}
		connection.Close()
		if err != nil {
			kind := kind + ": closed by the server"
			g.attacks.add(kind)
			continue
		}
		g.attacks.add(kind)
	}
}

const (
	abortEvery = 250 * time.Millisecond
	// abortedWithin is the longest time after which a client goes away.
	abortedWithin = 150 * time.Millisecond
	// slowStatement sends a row every 20 ms for six seconds.
	slowStatement = "SELECT sleepEachRow(0.02) FROM numbers(300) SETTINGS max_block_size = 1"
)

// abortStatements runs statements with the credentials of the data directory, and closes their connections.
func (g *siege) abortStatements(ctx, end context.Context) {
	random := rand.New(rand.NewPCG(g.Seed, 200))
	k := newKillStore(ctx, g.soak, g.target.dir)
	defer k.leave()
	for harness.Pause(end, abortEvery) {
		server, err := k.open(end)
		if err != nil {
			g.attacks.add("aborted statements: no connection")
			continue
		}
		running, abort := context.WithCancel(ctx)
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(abortedWithin))), abort)
		rows, err := server.Conn().Query(running, slowStatement)
		if err == nil {
			for rows.Next() {
			}
			rows.Close()
		}
		if running.Err() != nil {
			g.attacks.add("aborted statements")
		} else {
			g.attacks.add("aborted statements: ended before")
		}
		timer.Stop()
		abort()
	}
}

const (
	leaveEvery = 5 * time.Second
	// leftAfter is how long a server stays that has joined.
	leftAfter = 500 * time.Millisecond
)

// leave lets a second server join the data directory and end, again and again: half of them are killed.
func (g *siege) leave(ctx, end context.Context) {
	dir := filepath.Join(g.target.dir, "second")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		g.leaving.add("%v", err)
		return
	}
	for n := 0; harness.Pause(end, leaveEvery); n++ {
		began := time.Now()
		second, err := g.target.product.Serve(ctx, dir, "--admin-listen", "off")
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		case g.crashes.during(began, time.Now()):
			g.attacks.add("leaving servers: not started while the engine was killed")
			continue
		default:
			g.leaving.add("%v", err)
			continue
		}
		harness.Pause(end, leftAfter)
		if n%2 == 0 {
			second.Stop()
			g.attacks.add("leaving servers")
		} else {
			second.Kill()
			<-second.Ended()
			g.attacks.add("leaving servers, killed")
		}
	}
}
