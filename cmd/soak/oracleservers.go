package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/schema"
)

// modelTries is how often a question is drawn again until it is of the model that is wanted.
const modelTries = 10

// lazyShare lets the queried servers refresh now and then.
const lazyShare = "0.02"

// A stage is a store from which two servers answer, and the author of what is in it.
type stage struct {
	store   *killStore
	servers []*queriedServer
	author  *author
}

// open starts both servers, and a third one that refreshes for all. The caller closes the stage, also after an error.
func (g *stage) open(ctx context.Context, s *soak) (refresher *process.Server, err error) {
	dir := filepath.Join(s.folder.Dir, s.part)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	g.store = newKillStore(ctx, s, dir)
	for n := range 2 {
		server := &queriedServer{store: g.store, name: fmt.Sprint("server-", n)}
		g.servers = append(g.servers, server)
		if err := server.start(); err != nil {
			return nil, err
		}
	}
	return g.store.serve()
}

// ingest stores records that the author writes.
func (g *stage) ingest(ctx context.Context, batches ...batch) error {
	file := filepath.Join(g.store.dir, "records.ndjson")
	defer os.Remove(file)
	if err := g.author.write(file, batches...); err != nil {
		return err
	}
	return g.store.run(ctx, "ingest", file)
}

// push has a server store records that the author writes.
func (g *stage) push(ctx context.Context, by *queriedServer, batches ...batch) error {
	for _, b := range batches {
		var body bytes.Buffer
		if err := g.author.print(&body, b); err != nil {
			return err
		}
		_, err := pushUntilStored(ctx, func() string { return by.server.Address }, by.keys[b.organization], body.Bytes())
		if err != nil {
			return fmt.Errorf("push to %s: %w", by.name, err)
		}
	}
	return nil
}

func (g *stage) close() {
	for _, server := range g.servers {
		server.stop()
	}
	if g.store != nil {
		g.store.close()
	}
}

// A queriedServer is one of the servers that answer.
type queriedServer struct {
	store   *killStore
	name    string
	server  *process.Server
	clients map[string]*client // by organization
	keys    map[string]string
	read    int64 // of its log
}

func (a *queriedServer) start() error {
	dir := filepath.Join(a.store.dir, a.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	a.server, err = a.store.product.Serve(a.store.life, dir, "--admin-listen", "off", "--maintenance-share", lazyShare,
		"--rate-limit-per-minute", plenty, "--verify-limit-per-minute", plenty)
	a.clients, a.read = map[string]*client{}, 0
	for organization, key := range a.keys {
		a.admit(organization, key)
	}
	return err
}

func (a *queriedServer) admit(organization, key string) {
	if a.keys == nil {
		a.keys = map[string]string{}
	}
	a.keys[organization] = key
	if a.server != nil {
		a.clients[organization] = newClient(a.server.Address, key)
	}
}

// follow counts the answers whose strategy is in the log.
func (a *queriedServer) follow(t *trial) (err error) {
	a.read, err = t.counts.follow(a.server.LogFile(), a.read, t.inquiry.verdicts)
	return err
}

func (a *queriedServer) stop() {
	if a.server != nil {
		a.server.Stop()
	}
}

// restart kills a server and starts another one in its place.
func (t *trial) restart(_ context.Context, n int) error {
	t.serverKills++
	a := t.servers[n]
	a.server.Kill()
	<-a.server.Ended()
	return a.start()
}

// admit makes a key for an organization, for both servers.
func (t *trial) admit(ctx context.Context, organization string) error {
	var key process.Key
	err := t.store.patiently(ctx, func() (err error) {
		key, err = t.store.product.CreateKey(ctx, organization, "--scopes", "analytics:read,ingest:write")
		return err
	})
	for _, a := range t.servers {
		a.admit(organization, key.Key)
	}
	return err
}

// A staller is a server that is stopped as if its machine were paused.
type staller struct {
	server *process.Server
	paused bool
}

func (s *staller) pause() {
	if !s.paused {
		s.server.Pause()
		s.paused = true
	}
}

func (s *staller) resume() {
	if s.paused {
		s.server.Resume()
		s.paused = false
	}
}

// purge takes out a person, some runs or a small organization.
func (t *trial) purge(ctx context.Context) error {
	t.purges++
	t.stalled.resume()
	switch t.purges % 3 {
	case 0:
		organization := smallOrganizations[t.random.IntN(len(smallOrganizations))]
		if err := t.store.run(ctx, "purge", "--org", organization, "--yes"); err != nil {
			return err
		}
		t.author.purgeOrganization(organization)
		return t.admit(ctx, organization)
	case 1:
		organization := append([]string{mainOrganization}, smallOrganizations...)[t.random.IntN(1+len(smallOrganizations))]
		people := t.author.of(organization).people[1:]
		person := people[t.random.IntN(min(len(people), smallPeople))]
		if err := t.store.run(ctx, "purge", "--org", organization, "--person", person, "--yes"); err != nil {
			return err
		}
		t.author.purgePerson(organization, person)
		return nil
	default:
		// As the worker does it for rows that its source deleted.
		ids := t.author.purgeRuns(mainOrganization, 50)
		return t.store.patiently(ctx, func() error {
			server, err := t.store.open(ctx)
			if err != nil {
				return err
			}
			return purge.Records(ctx, server.Conn(), normalize.KindRun, schema.OrganizationID(mainOrganization), ids)
		})
	}
}

// queryAll queries both servers for a time, mostly what the lacking classes need.
func (t *trial) queryAll(ctx context.Context, lacking []string, length time.Duration, disturbed bool) {
	end, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	if disturbed {
		killed := time.AfterFunc(time.Duration(t.random.Int64N(int64(length/2))), t.killEngine)
		defer killed.Stop()
	}
	var querying sync.WaitGroup
	for _, a := range t.servers {
		for range queriersPerServer {
			q := &questioner{random: rand.New(rand.NewPCG(t.random.Uint64(), 0)), author: t.author}
			querying.Go(func() {
				for end.Err() == nil {
					organization, want, model, paged := q.choose(lacking)
					drawn := q.draw(want, organization, paged)
					for tries := 0; model != "" && drawn.Model != model && tries < modelTries; tries++ {
						drawn = q.draw(want, organization, paged)
					}
					if t.inquiry.run(ctx, a.clients[organization], organization, drawn) == 0 {
						harness.Pause(end, refusedPause)
					}
				}
			})
		}
	}
	querying.Wait()
}

// choose chooses an organization and what its question is made for: half of the questions are for the rarest classes.
func (q *questioner) choose(lacking []string) (organization, want, model string, paged bool) {
	organization, paged = mainOrganization, q.random.IntN(2) == 0
	switch q.random.IntN(20) {
	case 0:
		return oneOf(q, smallOrganizations), wantAny, "", paged
	case 1:
		return organization, wantAny, "", paged
	}
	class := oneOf(q, lacking)
	if q.random.IntN(2) == 0 {
		class = lacking[0]
	}
	_, model, _ = strings.Cut(class, of)
	for _, page := range []string{"first", "next"} {
		if slices.Contains(lacking, "page: "+page) {
			paged = paged || q.random.IntN(2) == 0
		}
	}
	switch {
	case strings.HasPrefix(class, wantRows):
		want = wantRows
	case strings.HasPrefix(class, wantAggregates):
		want = wantAggregates
	case class == wantBase:
		want = wantBase
	default:
		want = oneOf(q, []string{wantRows, wantAggregates})
	}
	return organization, want, model, paged
}
