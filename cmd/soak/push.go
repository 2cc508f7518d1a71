package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/cmd/internal/trap"
	pusher "github.com/runlens/runlens/http/client"
)

const (
	pushClients = 8
	// pushMemory is the most that a server may take while records are pushed.
	pushMemory = 256 * mib
	// longestLife is how long a server lives at most once it has acknowledged something.
	longestLife = 500 * time.Millisecond
	// ackPatience is how long an acknowledgement is waited for: an engine and a server may have to start before it.
	ackPatience = time.Minute
	// springPatience is how long a trap is waited for: inserts come all the time.
	springPatience = time.Minute
)

// A pushing is clients that push records to a server all the time, each of an organization of its own. A body is sent
// again and again until it is acknowledged, and never after that.
type pushing struct {
	*soak
	store   *killStore
	server  *process.Server
	address atomic.Pointer[string]
	senders []*sender

	bodies, records atomic.Int64 // acknowledged
}

// A sender is one client.
type sender struct {
	name, key string
	sent      killRecords
	bodies    int
}

// provePush measures how quickly records are stored that many clients push, and how much memory that takes. Then it
// kills the server at random moments and the engine at chosen points: what was acknowledged is there, once.
func (s *soak) provePush(ctx context.Context) error {
	p := &pushing{soak: s}
	var err error
	if p.store, err = openKillStore(ctx, s, filepath.Join(s.folder.Dir, s.part)); err != nil {
		return err
	}
	defer p.store.close()
	if err := p.start(); err != nil {
		return err
	}
	defer func() { p.server.Stop() }()
	for n := range pushClients {
		name := fmt.Sprint("push-", n)
		key, err := p.store.product.CreateKey(ctx, name, "--scopes", "ingest:write")
		if err != nil {
			return err
		}
		p.senders = append(p.senders, &sender{name: name, key: key.Key, sent: killRecords{sent: versions{}}})
	}
	if err := p.measure(ctx); err != nil {
		return err
	}
	return p.kill(ctx)
}

// start starts a server, which the clients find.
func (p *pushing) start() (err error) {
	if p.server, err = p.store.product.Serve(p.store.life, p.store.dir, "--admin-listen", "off",
		"--maintenance-share", eagerShare); err == nil {
		p.address.Store(&p.server.Address)
	}
	return err
}

// during pushes from all clients while something is done, and until the last bodies are acknowledged.
func (p *pushing) during(ctx context.Context, runs, attributions int, do func() error) error {
	done, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	failures := make(chan error, len(p.senders)+1)
	for _, s := range p.senders {
		sending.Go(func() {
			for done.Err() == nil {
				if err := p.send(ctx, s, runs, attributions); err != nil {
					failures <- fmt.Errorf("%s: %w", s.name, err)
					return
				}
			}
		})
	}
	failures <- do()
	stop()
	sending.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// send pushes a body until it is acknowledged.
func (p *pushing) send(ctx context.Context, s *sender, runs, attributions int) error {
	s.bodies++
	file := filepath.Join(p.store.dir, fmt.Sprintf("%s-%d.ndjson", s.name, s.bodies))
	if err := s.sent.write(file, s.name, runs, attributions, runs/5); err != nil {
		return err
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	stored, err := pushUntilStored(ctx, func() string { return *p.address.Load() }, s.key, body)
	if err == nil {
		p.bodies.Add(1)
		p.records.Add(int64(stored))
	}
	return err
}

// pushUntilStored pushes a body to the server at an address until it is acknowledged, and returns how many records it
// has, all of which are good.
func pushUntilStored(ctx context.Context, address func() string, key string, body []byte) (stored int, err error) {
	for {
		c, err := pusher.New(pusher.Config{URL: address(), Key: key, MaxWait: -1})
		if err != nil {
			return 0, err
		}
		pushed, err := c.Push(ctx, body)
		var refused *pusher.Error
		switch {
		case err == nil && pushed.Rejected > 0:
			return 0, fmt.Errorf("%d of %d records were rejected: %v", pushed.Rejected, pushed.Lines, pushed.Rejects[0])
		case err == nil:
			return pushed.Stored, nil
		case errors.As(err, &refused) && refused.Status != 429 && refused.Status != 500, ctx.Err() != nil:
			return 0, err
		case refused != nil:
			time.Sleep(refused.RetryAfter)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// measure pushes as quickly as the clients can.
func (p *pushing) measure(ctx context.Context) error {
	began := time.Now()
	err := p.during(ctx, 3000, 2000, func() error {
		select {
		case <-ctx.Done():
		case <-time.After(p.PushFor):
		}
		return ctx.Err()
	})
	took := time.Since(began)
	if err != nil {
		return err
	}
	peak, _ := process.PeakResident(p.server.PID())
	p.see("records pushed by 8 clients on this machine", "%.0f/s, %d bodies", float64(p.records.Load())/took.Seconds(),
		p.bodies.Load())
	p.hold("memory of the server", fmt.Sprintf("%d MiB", peak/mib), fmt.Sprintf("%d MiB", pushMemory/mib),
		peak <= pushMemory)
	return nil
}

// kill kills servers and engines under the clients, in turns, and compares.
func (p *pushing) kill(ctx context.Context) error {
	able := trap.Able(ctx)
	if able != nil && !errors.Is(able, trap.ErrUnable) {
		return able
	}
	random := rand.New(rand.NewPCG(p.Seed, 0))
	points := p.store.atPushes()
	servers, engines, misses := 0, 0, 0
	progress, stop := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		p.reportUntil(progress, func() string { return fmt.Sprintf("%d bodies acknowledged", p.bodies.Load()) })
	})
	defer reporting.Wait()
	defer stop()
	acknowledged := p.records.Load()
	err := p.during(ctx, 120, 80, func() error {
		for n := 0; servers+engines < p.PushKills && ctx.Err() == nil; n++ {
			before := p.bodies.Load()
			if !harness.Poll(ctx, ackPatience, time.Millisecond, func() bool { return p.bodies.Load() > before }) {
				return errors.New("nothing was acknowledged for a minute")
			}
			if n%2 == 0 && able == nil {
				hit, err := p.killEngine(ctx, points[n/2%len(points)])
				if err != nil {
					return err
				}
				if hit {
					engines++
				} else if misses++; misses > p.PushKills {
					return fmt.Errorf("%d traps did not spring", misses)
				}
				continue
			}
			time.Sleep(time.Duration(random.Int64N(int64(longestLife))))
			p.server.Kill()
			<-p.server.Ended()
			servers++
			if err := p.start(); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	want := versions{}
	for _, s := range p.senders {
		maps.Copy(want, s.sent.sent)
	}
	findings, err := p.store.checkAll(ctx, want)
	if err != nil {
		return err
	}
	var wrong tally
	for _, f := range findings {
		wrong.find(f)
		p.report.notes.Add("%s: %s %s", p.part, f.cycle, f.what)
	}
	p.see("kills while 8 clients push", "%d of the server at random, %d of the engine at chosen points (%d missed)",
		servers, engines, misses)
	p.hold("acknowledged records", fmt.Sprintf("%d (%d while killing); %d lost, %d doubled, %d different",
		p.records.Load(), p.records.Load()-acknowledged, wrong.lost, wrong.doubled, wrong.differing), "0, 0, 0",
		wrong == tally{})
	return nil
}

// atPushes are the points of an insert at which the engine is killed.
func (k *killStore) atPushes() (all []trap.Point) {
	for _, table := range []string{"agents", "runs", "attributions"} {
		all = append(all, k.atLog(table, 1)...)
		all = append(all, k.atPart(table, 1)...)
		all = append(all, k.atAnswer(table, 1)...)
	}
	return append(all, k.atPart("insert_counters", 1)...)
}

// killEngine sets a trap, and waits until the engine has died in it and another one answers.
func (p *pushing) killEngine(ctx context.Context, point trap.Point) (hit bool, err error) {
	engine, err := p.store.engine(ctx)
	if err != nil {
		return false, err
	}
	set, err := trap.Set(ctx, engine.PID, point)
	if err != nil {
		return false, err
	}
	select {
	case <-set.Sprung():
	case <-time.After(springPatience):
	case <-ctx.Done():
	}
	hit = p.store.release(set)
	_, err = p.store.living(ctx)
	return hit, err
}
