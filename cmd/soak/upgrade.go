package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
)

const (
	upgradeClients = 4
	// exchanges is how often a server takes the place of one of the other release: both in turn, to the newer release,
	// back, and to the newer one again.
	exchanges     = 6
	buildPatience = 10 * time.Minute
)

// A rollout is two servers on one store that are exchanged while clients ask and records come in.
type rollout struct {
	*soak
	before, after process.Product
	dir           string

	lock    sync.Mutex
	servers [2]*process.Server // nil while a place is empty
	keys    []string           // made by each release

	copies copies
	asked  counts
	failed examples // of questions
	lost   examples // of ingest runs
}

// proveUpgrade exchanges the servers of the release before for those of this one, and back, one after the other, under
// load: no question fails, and each answer has all that was acknowledged before it was asked. Clients do as a load
// balancer does: where nobody listens, they ask the other server.
func (s *soak) proveUpgrade(ctx context.Context) error {
	r := &rollout{soak: s, dir: filepath.Join(s.folder.Dir, s.part)}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return err
	}
	r.after = process.Product{Binary: s.Runlens, EngineLib: s.EngineLib, DataDir: filepath.Join(r.dir, "store")}
	r.before = r.after
	r.before.Binary = filepath.Join(r.dir, "runlens-before")
	commit, err := buildBefore(ctx, s.Before, r.dir, r.before.Binary)
	if err != nil {
		s.see("skipped: the release before cannot be built", "%v", err)
		return nil
	}
	s.say("the release before is %s", commit)
	defer r.close()
	for i := range r.servers {
		if err := r.place(ctx, i, r.before); err != nil {
			return err
		}
	}
	if err := r.addKey(ctx, r.before); err != nil {
		return err
	}
	end, cancel := context.WithCancel(ctx)
	defer cancel()
	var loads sync.WaitGroup
	for n := range upgradeClients {
		loads.Go(func() { r.ask(ctx, end, n) })
	}
	loads.Go(func() { r.ingest(ctx, end) })
	err = r.exchangeAll(ctx)
	cancel()
	loads.Wait()
	s.see("answers, and runs acknowledged meanwhile", "%s; %d", &r.asked, r.copies.acknowledged())
	s.none("questions that failed or lacked a record", &r.failed)
	s.none("ingest runs that failed", &r.lost)
	return err
}

// buildBefore builds the binary of a commit, by default of the one before the newest migration came.
func buildBefore(ctx context.Context, commit, dir, binary string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, buildPatience)
	defer cancel()
	if commit == "" {
		newest, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H", "--diff-filter=A", "--",
			"schema/migrations").Output()
		if err != nil || len(newest) == 0 {
			return "", errors.New("there is no history of git")
		}
		commit = string(bytes.TrimSpace(newest)) + "^"
	}
	source := filepath.Join(dir, "source")
	archive := filepath.Join(dir, "source.tar")
	for _, step := range [][]string{
		{"git", "archive", "--output", archive, commit}, {"mkdir", source}, {"tar", "-xf", archive, "-C", source},
		{"go", "build", "-C", source, "-o", binary, "./cmd/runlens"},
	} {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", step[0], err, out)
		}
	}
	return commit, errors.Join(os.RemoveAll(source), os.Remove(archive))
}

// exchangeAll replaces one server after the other, by the newer release, by the older one, and by the newer one again.
func (r *rollout) exchangeAll(ctx context.Context) error {
	pause := r.UpgradeFor / (exchanges + 1)
	for n := range exchanges {
		if !harness.Pause(ctx, pause) {
			return ctx.Err()
		}
		by := r.after
		if n/2%2 == 1 {
			by = r.before
		}
		if err := r.exchange(ctx, n%2, by); err != nil {
			return err
		}
		if err := r.addKey(ctx, by); err != nil {
			return err
		}
		r.say("exchanged %d of %d: %s; %d runs acknowledged", n+1, exchanges, &r.asked, r.copies.acknowledged())
	}
	harness.Pause(ctx, pause)
	return nil
}

// exchange stops a server and starts another one in its place.
func (r *rollout) exchange(ctx context.Context, place int, by process.Product) error {
	r.lock.Lock()
	old := r.servers[place]
	r.lock.Unlock()
	old.Stop()
	return r.place(ctx, place, by)
}

func (r *rollout) place(ctx context.Context, place int, of process.Product) error {
	dir := filepath.Join(r.dir, fmt.Sprint("server", place))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	server, err := of.Serve(ctx, dir, append([]string{"--admin-listen", "127.0.0.1:0", "--rate-limit-per-minute", plenty,
		"--verify-limit-per-minute", plenty}, r.Serve...)...)
	if err != nil {
		return err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.servers[place] = server
	return nil
}

func (r *rollout) addKey(ctx context.Context, by process.Product) error {
	key, err := by.CreateKey(ctx, copiedOrganization)
	if err != nil {
		return err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.keys = append(r.keys, key.Key)
	return nil
}

// ask sends questions one after the other, each with any key, to any server.
func (r *rollout) ask(ctx, end context.Context, client int) {
	random := rand.New(rand.NewPCG(r.Seed, uint64(client)))
	now := time.Now().UTC()
	q := question{Model: "agent_runs", Metrics: []string{"run_count"}, columns: []string{"run_count"},
		Range: dateRange{now.AddDate(0, 0, -2).Format(time.DateOnly), now.AddDate(0, 0, 1).Format(time.DateOnly), "UTC"}}
	for end.Err() == nil {
		atLeast := r.copies.acknowledged()
		a, err := r.send(ctx, random, q.body())
		switch count, counted := 0.0, false; {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.failed.add("no answer: %v", err)
		case a.status != http.StatusOK:
			r.failed.add("%d: %s", a.status, a.body)
		default:
			p, err := q.check(a.body)
			if err == nil {
				count, counted = p.Rows[0][0].(float64)
			}
			if !counted || int64(count) < atLeast {
				r.failed.add("%d runs were acknowledged, and the answer is %s (%v)", atLeast, a.body, err)
			}
		}
		r.asked.add("asked")
	}
}

// send asks one server, and the other one where nobody listens.
func (r *rollout) send(ctx context.Context, random *rand.Rand, body []byte) (a answer, err error) {
	r.lock.Lock()
	servers, key := r.servers, r.keys[random.IntN(len(r.keys))]
	r.lock.Unlock()
	first := random.IntN(len(servers))
	for i := range servers {
		a, err = newClient(servers[(first+i)%len(servers)].Address, key).hasty().query(ctx, body)
		var dial *net.OpError
		if !errors.As(err, &dial) || dial.Op != "dial" {
			break
		}
	}
	return a, err
}

// ingest stores small files, by the binaries of both releases in turn.
func (r *rollout) ingest(ctx, end context.Context) {
	file := filepath.Join(r.dir, "copied.ndjson")
	for n := 0; end.Err() == nil; n++ {
		by := []process.Product{r.before, r.after}[n%2]
		err := writeRuns(file, copiedOrganization, "Copied", copiedRuns, time.Now())
		if err == nil {
			var out []byte
			if out, err = by.Command(ctx, "ingest", "--json", file).Output(); err == nil {
				var stored int
				stored, err = storedRuns(out)
				r.copies.runs.Add(int64(stored))
			}
		}
		if err != nil && ctx.Err() == nil {
			r.lost.add("%v", err)
		}
	}
}

// close ends the servers, and the engine with them.
func (r *rollout) close() {
	for _, server := range r.servers {
		if server != nil {
			server.Stop()
		}
	}
	r.after.AwaitEngineEnd()
	r.before.AwaitEngineEnd()
	os.RemoveAll(r.after.DataDir)
}
