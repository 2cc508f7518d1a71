package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

const (
	// movedRuns is how many runs of an organization a file has, and as many attribution records: one on each of as many
	// days (killRecords.write).
	movedRuns    = 60
	movedChanges = 20 // newer versions of runs of the file before
	// moveWritersPause is the pause between two files.
	moveWritersPause = 2 * time.Second
)

// A moveWriter ingests one file after the other, each with records of several organizations, and each again until it is
// acknowledged.
type moveWriter struct {
	*relocation
	n             int
	organizations []*movedOrganization
	longest       time.Duration // from the first try of a file until it was acknowledged

	lock    sync.Mutex
	running *exec.Cmd
}

func (w *moveWriter) run(ctx, end context.Context) {
	for n := 0; end.Err() == nil; n++ {
		if err := w.round(ctx, fmt.Sprintf("ingest-%d-%d", w.n, n)); err != nil {
			if ctx.Err() == nil {
				w.refused.add("ingest: %v", err)
			}
			return
		}
		harness.Pause(end, moveWritersPause)
	}
}

// round stores one file.
func (w *moveWriter) round(ctx context.Context, name string) error {
	var all []byte
	for _, o := range w.organizations {
		file := w.file(name + "-" + o.name)
		if err := o.records.write(file, o.name, movedRuns, movedRuns, movedChanges); err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all = append(all, text...)
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	file := w.file(name + ".ndjson")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	for _, o := range w.organizations {
		o.history.send()
	}
	for began := time.Now(); ; {
		err := w.ingest(ctx, file)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			w.longest = max(w.longest, time.Since(began))
			break
		}
		harness.Pause(ctx, time.Second/5)
	}
	for _, o := range w.organizations {
		o.history.acknowledge()
	}
	return nil
}

// ingest runs the command once.
func (w *moveWriter) ingest(ctx context.Context, file string) error {
	command := w.product.Command(ctx, "ingest", file)
	w.lock.Lock()
	err := command.Start()
	w.running = command
	w.lock.Unlock()
	if err == nil {
		err = command.Wait()
	}
	w.lock.Lock()
	w.running = nil
	w.lock.Unlock()
	return err
}

// kill kills the command, if it runs.
func (w *moveWriter) kill() bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.running != nil && w.running.Process.Kill() == nil
}

// A history is how many files of an organization were sent and acknowledged, and the greatest numbers in answers. Each
// file, and each round of the worker's source, adds one record on each of its days.
type history struct {
	lock         sync.Mutex
	sent         int
	acknowledged int
	inSource     int
	seen         map[string]map[string]sighting // by model and day
}

func (h *history) send() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.sent++
}

func (h *history) acknowledge() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.acknowledged++
}

// changing takes note that a round of the source is about to be committed.
func (h *history) changing() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.inSource++
}

// bounds are what an answer has on each day.
type bounds struct {
	acknowledged int                 // files when it was asked for: at least as many records on their days
	seen         map[string]sighting // by day, in answers before it was asked for: at least as many
	sent         int                 // files when it had arrived: at most as many records on their days
	inSource     int                 // rounds of the source then: at most as many on its days
}

// A sighting is how many records an answer had on a day. One as of an earlier instant may have less: it leaves out
// inserts in flight, of which others show what is there already.
type sighting struct {
	records int
	asOf    string // in the one form that answers have, so that the greater text is the later instant
}

// lacks reports whether an answer should have had more.
func (s sighting) lacks(records int, asOf string) bool { return records < s.records && asOf >= s.asOf }

// least is what an answer to a question that is asked now has at least.
func (h *history) least(model string) bounds {
	h.lock.Lock()
	defer h.lock.Unlock()
	return bounds{acknowledged: h.acknowledged, seen: maps.Clone(h.seen[model])}
}

// most adds what an answer that has arrived has at most.
func (h *history) most(b *bounds) {
	h.lock.Lock()
	defer h.lock.Unlock()
	b.sent, b.inSource = h.sent, h.inSource
}

// see takes note of an answer.
func (h *history) see(model, asOf string, days map[string]int) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.seen[model] == nil {
		h.seen[model] = map[string]sighting{}
	}
	for day, n := range days {
		before := h.seen[model][day]
		if n > before.records || n == before.records && asOf < before.asOf {
			h.seen[model][day] = sighting{n, asOf}
		}
	}
}
