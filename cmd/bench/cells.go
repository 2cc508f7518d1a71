package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/runlens/runlens/cmd/internal/process"
)

const (
	// mostOfOneCell is the most processor time that a question may take over three cells, of that over one store.
	mostOfOneCell = 1.02
	// leastOfThree is how many times the questions three servers on three cells should answer, of those of one on one
	// store, with as much processor time each.
	leastOfThree = 2.7
	// mostWhileFrozen is how long the slowest of twenty answers may take while another cell's engine stands still.
	mostWhileFrozen = 1.10

	celledOrganizations = 6
	celledRuns          = 50_000 // of an organization, at scale 1
	celledClients       = 4      // ask at once
)

// measureCells compares three cells with one store that has the same organizations.
func (b *bench) measureCells(ctx context.Context) error {
	size := uint64(max(40, math.Round(celledRuns*b.Scale)))
	g := generator{class{"celled", celledOrganizations, size}, world{until: b.Until}}
	file := filepath.Join(b.folder.Dir, "celled.ndjson")
	if err := b.writeFile(ctx, g, fileFormats[0], file); err != nil {
		return err
	}
	defer os.Remove(file)
	one, err := b.openStores(ctx, "one", file, g.class)
	defer one.close()
	if err != nil {
		return err
	}
	three, err := b.openStores(ctx, "three", file, g.class, "a", "b", "c")
	defer three.close()
	if err != nil {
		return err
	}
	const oneServer, threeServers = 1, 3
	ratio, err := b.compareStores(ctx, one, three, oneServer)
	if err != nil {
		return err
	}
	ratio.Name = "a question of 30 days, 1 server, 3 cells"
	b.report.add(ratio.atMost(mostOfOneCell))
	if ratio, err = b.compareStores(ctx, one, three, threeServers); err != nil {
		return err
	}
	ratio.Name = "questions, 3 servers, 3 cells, processors three times"
	ratio.Measured = threeServers / ratio.Measured
	b.report.add(ratio.goal(fmt.Sprintf("at least %.2f", leastOfThree), ratio.Measured >= leastOfThree))
	return b.freezeCell(ctx, three)
}

// celledQuestions are asked in turns.
func (b *bench) celledQuestions() (bodies [][]byte) {
	days := world{until: b.Until}.lastDays(monthDays)
	for _, by := range [][]string{nil, {"day"}, {"agent_id"}, {"user_type"}} {
		bodies = append(bodies, question{model: runsModel, metrics: additive, dimensions: by, limit: firstPage}.body(days))
	}
	return bodies
}

// compareStores measures the processor time of a question with several servers on three cells and with one on one
// store, in turns. Both must answer alike.
func (b *bench) compareStores(ctx context.Context, one, three *stores, servers int) (result, error) {
	sides := make([]*deployment, 0, 2)
	for _, s := range []struct {
		*stores
		servers int
	}{{three, servers}, {one, 1}} {
		d, err := b.deploy(ctx, s.stores, s.servers)
		if err != nil {
			return result{}, err
		}
		defer d.stop()
		sides = append(sides, d)
	}
	if err := b.checkAlike(ctx, sides[0], sides[1]); err != nil {
		return result{}, err
	}
	var took [2][]float64
	for range b.Rounds {
		for i, d := range sides {
			each, err := b.processorsOfAQuestion(ctx, d)
			if err != nil {
				return result{}, err
			}
			took[i] = append(took[i], each)
		}
	}
	r := comparison("cells", "", "1 server, 1 store", statsOf(took[0]), statsOf(took[1]))
	r.Unit = "processor ms"
	return r, nil
}

// checkAlike asks both sides all questions of all organizations, which also warms them.
func (b *bench) checkAlike(ctx context.Context, ours, reference *deployment) error {
	for o, client := range ours.clients {
		for n, body := range b.celledQuestions() {
			var rows [2]answer
			for i, c := range []*apiClient{client, reference.clients[o]} {
				text, err := c.query(ctx, body)
				if err != nil {
					return err
				}
				if rows[i], err = answerOfJSON(text); err != nil {
					return err
				}
			}
			b.report.check(fmt.Sprintf("question %d of organization %d over cells", n, o), rows[0], rows[1])
		}
	}
	return nil
}

// processorsOfAQuestion is the mean in milliseconds over a window in which clients ask all the time.
func (b *bench) processorsOfAQuestion(ctx context.Context, d *deployment) (float64, error) {
	before, err := d.processors()
	if err != nil {
		return 0, err
	}
	bodies := b.celledQuestions()
	asked, err := b.often(ctx, celledClients, func(ctx context.Context, n int) error {
		_, err := d.clients[n%len(d.clients)].query(ctx, bodies[n%len(bodies)])
		return err
	})
	if err != nil {
		return 0, err
	}
	after, err := d.processors()
	return milliseconds(after-before) / float64(asked), err
}

// freezeCell measures answers of organizations in other cells while the engine of one stands still.
func (b *bench) freezeCell(ctx context.Context, three *stores) error {
	d, err := b.deploy(ctx, three, 1)
	if err != nil {
		return err
	}
	defer d.stop()
	frozen := three.cells[0]
	engine, err := process.Product{DataDir: frozen}.Engine()
	if err != nil {
		return err
	}
	var others []*apiClient
	for o, cell := range three.cells {
		if cell != frozen {
			others = append(others, d.clients[o])
		}
	}
	bodies, n := b.celledQuestions(), 0
	ask := func(ctx context.Context) error {
		n++
		_, err := others[n%len(others)].query(ctx, bodies[n%len(bodies)])
		return err
	}
	var took [2][]float64
	for range b.Rounds {
		for i, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			if err := syscall.Kill(engine.PID, signal); err != nil {
				return err
			}
			for began := time.Now(); time.Since(began) < b.Window || len(took[i]) < b.Repeat; {
				asked := time.Now()
				if err := ask(ctx); err != nil {
					_ = syscall.Kill(engine.PID, syscall.SIGCONT)
					return err
				}
				took[i] = append(took[i], milliseconds(time.Since(asked)))
			}
		}
	}
	r := comparison("cells", "95 of 100 answers while a cell stands still", "all cells there", statsOf(took[0]),
		statsOf(took[1]))
	r.Measured = r.Ours.P95 / r.Reference.P95
	b.report.add(r.atMost(mostWhileFrozen))
	return nil
}
