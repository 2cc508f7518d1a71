package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
)

const (
	// mostOfOneCell is the most processor time that a question may take over three cells beyond what is used while nobody
	// asks, of that over one store.
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
	of, err := b.compareStores(ctx, one, three, oneServer)
	if err != nil {
		return err
	}
	b.report.add(of[idleCost].named("a second in which nobody asks, 1 server, 3 cells"),
		of[beyondIdle].named("a question of 30 days beyond that").atMost(mostOfOneCell))
	if of, err = b.compareStores(ctx, one, three, threeServers); err != nil {
		return err
	}
	ratio := of[wholeCost].named("questions, 3 servers, 3 cells, as on machines of their own")
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

// What is measured of processor times, in milliseconds.
const (
	wholeCost  = iota // of a question
	beyondIdle        // of that beyond what is used meanwhile anyway
	idleCost          // of a second in which nobody asks
	celledCosts
)

// compareStores measures several servers on three cells and one on one store, in turns. Both must answer alike.
func (b *bench) compareStores(
	ctx context.Context, one, three *stores, servers int,
) (ratios [celledCosts]result, err error) {
	sides := make([]*deployment, 0, 2)
	for _, s := range []struct {
		*stores
		servers int
	}{{three, servers}, {one, 1}} {
		d, err := b.deploy(ctx, s.stores, s.servers)
		if err != nil {
			return ratios, err
		}
		defer d.stop()
		sides = append(sides, d)
	}
	if err := b.checkAlike(ctx, sides[0], sides[1]); err != nil {
		return ratios, err
	}
	var took [2][celledCosts][]float64
	for range b.Rounds {
		for i, d := range sides {
			each, err := b.costsInCells(ctx, d)
			if err != nil {
				return ratios, err
			}
			for n, cost := range each {
				took[i][n] = append(took[i][n], cost)
			}
		}
	}
	for n := range ratios {
		ratios[n] = comparison("cells", "", "1 server, 1 store", statsOf(took[0][n]), statsOf(took[1][n]))
		ratios[n].Unit = "processor ms"
	}
	return ratios, nil
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

// costsInCells are the means over windows, two for each share: one in which nobody asks, and one in which clients ask
// all the time.
func (b *bench) costsInCells(ctx context.Context, d *deployment) (mean [celledCosts]float64, err error) {
	bodies := b.celledQuestions()
	for _, s := range d.shares {
		used := func(during func() error) (processors, seconds float64, err error) {
			before, _ := processorTime(s.processes...)
			began := time.Now()
			err = during()
			seconds = time.Since(began).Seconds()
			after, _ := processorTime(s.processes...)
			return milliseconds(max(after-before, clockTick)), seconds, err
		}
		idle, rested, _ := used(func() error { harness.Pause(ctx, b.Window); return nil })
		idle /= rested
		var asked int64
		took, seconds, err := used(func() (err error) {
			asked, err = b.often(ctx, celledClients, func(ctx context.Context, n int) error {
				_, err := s.clients[n%len(s.clients)].query(ctx, bodies[n/len(s.clients)%len(bodies)])
				return err
			})
			return err
		})
		if err != nil {
			return mean, err
		}
		questions, shares := float64(asked), float64(len(d.shares))
		mean[wholeCost] += took / questions / shares
		mean[beyondIdle] += (took - idle*seconds) / questions / shares
		mean[idleCost] += idle / shares
	}
	return mean, nil
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
