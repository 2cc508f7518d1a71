package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/schema"
)

const (
	movedSlots       = 2 // of which organizations are moved, each of three organizations
	moveWriters      = 2 // ingest at once
	moveAskers       = 3
	organizationsOf  = 3     // a slot
	moveShare        = "0.2" // for maintenance: what was moved is built soon, and a move has some of the processor
	movedCellsOfFile = "cells:\n- {name: a, data_dir: a}\n- {name: b, data_dir: b}\n- {name: c, data_dir: c}\n"
)

// movedCells are the names of the cells.
var movedCells = []string{"a", "b", "c"}

// A relocation is three cells between which organizations are moved, with all that writes and asks meanwhile.
type relocation struct {
	*soak
	life          context.Context // of the processes
	dir           string
	product       process.Product
	cells         map[string]*killStore
	servers       [2]*movedServer
	organizations []*movedOrganization
	writers       []*moveWriter
	worker        *moveWorker
	random        *rand.Rand

	tallies tallies
	moves   int
	runs    int      // of the mover
	refused examples // what should have gone on
	left    examples // rows in cells that they are not in
	asked   asked
	log     *os.File // of all movers

	lock    sync.Mutex
	killing string // the last kill, for whoever reports what is wrong
}

// A movedOrganization is one of the organizations, and what is known of it.
type movedOrganization struct {
	name   string
	cell   string
	pinned bool // it was moved by itself
	key    string

	records killRecords // of the only writer that ingests for it
	history history
}

// proveMoves moves organizations and slots between three cells while they are written by ingest and a worker, and asked
// for by two servers, and kills one of all these at every step of a move. A move whose command died, or failed, is gone
// on with by the same command. Each answer is one of a moment between the question and the answer; in the end each
// organization is in one cell, with everything that was acknowledged, once.
func (s *soak) proveMoves(ctx context.Context) error {
	r := &relocation{soak: s, life: ctx, dir: filepath.Join(s.folder.Dir, s.part), cells: map[string]*killStore{},
		random: rand.New(rand.NewPCG(s.Seed, 0)), tallies: tallies{of: map[string]*tally{}}}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return err
	}
	defer r.close()
	if err := r.open(ctx); err != nil {
		return err
	}
	end, stop := context.WithCancel(ctx)
	defer stop()
	var loads sync.WaitGroup
	for _, w := range r.writers {
		loads.Go(func() { w.run(ctx, end) })
	}
	loads.Go(func() { r.worker.change(ctx, end) })
	for n := range moveAskers {
		a := &asker{relocation: r, random: rand.New(rand.NewPCG(s.Seed, uint64(n+1)))}
		loads.Go(func() { a.run(ctx, end) })
	}
	reporting, done := context.WithCancel(ctx)
	loads.Go(func() { s.reportUntil(reporting, r.progress) })
	err := r.moveAll(ctx)
	stop()
	done()
	loads.Wait()
	if err == nil {
		err = r.check(ctx)
	}
	r.report()
	return err
}

func (r *relocation) progress() string {
	return fmt.Sprintf("%d of %d kills, %s", r.tallies.kills(), r.MoveKills, &r.asked.outcomes)
}

// open starts everything that runs during the moves.
func (r *relocation) open(ctx context.Context) error {
	file := r.file("cells.yaml")
	err := os.WriteFile(file, []byte(movedCellsOfFile), 0o600)
	if err == nil {
		r.log, err = os.Create(r.file("movers.log"))
	}
	if err != nil {
		return err
	}
	r.product = process.Product{Binary: r.Runlens, EngineLib: r.EngineLib, DataDir: r.dir, Cells: file}
	for i := range r.servers {
		r.servers[i] = &movedServer{relocation: r, dir: filepath.Join(r.dir, fmt.Sprint("server", i))}
		if err := r.servers[i].start(); err != nil {
			return err
		}
	}
	for _, name := range movedCells {
		cell := newKillStore(ctx, r.soak, r.dir)
		cell.product = r.product
		cell.product.DataDir = filepath.Join(r.dir, name)
		r.cells[name] = cell
	}
	r.nameOrganizations()
	for _, o := range r.organizations {
		key, err := r.product.CreateKey(ctx, o.name)
		if err != nil {
			return err
		}
		o.key = key.Key
		if o.cell, err = r.cellOf(ctx, o.name); err != nil {
			return err
		}
	}
	for n := range moveWriters {
		w := &moveWriter{relocation: r, n: n}
		for i, o := range r.organizations {
			if i%moveWriters == n {
				w.organizations = append(w.organizations, o)
			}
		}
		r.writers = append(r.writers, w)
	}
	r.worker, err = newMoveWorker(ctx, r)
	return err
}

// nameOrganizations finds names in slots of several.
func (r *relocation) nameOrganizations() {
	of, full := map[int][]string{}, 0
	for n := 0; full < movedSlots; n++ {
		name := fmt.Sprint("org-", n)
		slot := cells.SlotOf(schema.OrganizationID(name))
		of[slot] = append(of[slot], name)
		if len(of[slot]) != organizationsOf {
			continue
		}
		full++
		for _, name := range of[slot] {
			r.organizations = append(r.organizations, &movedOrganization{name: name, records: killRecords{sent: versions{}},
				history: history{seen: map[string]map[string]sighting{}}})
		}
	}
}

// now is the last kill.
func (r *relocation) now() string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.killing
}

func (r *relocation) close() {
	if r.worker != nil {
		r.worker.close()
	}
	for _, s := range r.servers {
		if s != nil && s.server != nil {
			s.server.Stop()
		}
	}
	for _, cell := range r.cells {
		cell.keep = r.tallies.notes.count() > 0
		cell.close()
	}
	r.log.Close()
}

// report adds the figures.
func (r *relocation) report() {
	r.tallies.report(r.soak, r.MoveKills)
	var acknowledged, sent int
	var longest time.Duration
	for _, w := range r.writers {
		longest = max(longest, w.longest)
	}
	for _, o := range r.organizations {
		acknowledged, sent = acknowledged+o.history.acknowledged, sent+o.history.sent
	}
	r.see("moves, and runs of the command", "%d, %d", r.moves, r.runs)
	r.see("files acknowledged for an organization, and sent", "%d, %d", acknowledged, sent)
	r.see("rounds of changes in the worker's source", "%d", r.worker.rounds)
	r.see("longest wait of a writer", "%v", longest.Round(time.Second/10))
	r.asked.report(r.soak)
	r.none("commands and processes that ended", &r.refused)
	r.none("rows in other cells in the end", &r.left)
}

// A movedServer is one of the servers.
type movedServer struct {
	*relocation
	dir string

	lock   sync.Mutex
	server *process.Server
}

func (s *movedServer) start() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	flags := append([]string{"--admin-listen", "off", "--rate-limit-per-minute", plenty, "--verify-limit-per-minute",
		plenty, "--maintenance-share", moveShare}, s.Serve...)
	server, err := s.product.Serve(s.life, s.dir, flags...)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.server = server
	return err
}

// address is where it listens, or listened last.
func (s *movedServer) address() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.server.Address
}

// kill kills the server, and starts another one in its place.
func (s *movedServer) kill() error {
	s.server.Kill()
	<-s.server.Ended()
	old := s.server.Address
	err := s.start()
	if err != nil {
		return errors.Join(fmt.Errorf("the server at %s was killed, and could not be started again", old), err)
	}
	return nil
}
