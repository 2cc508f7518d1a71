package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const (
	// mostGrowth is the greatest ratio of what something takes among many organizations to the same among few.
	mostGrowth = 1.3
	// tenantRuns is how many runs an organization has, and as many attribution records.
	tenantRuns = 20
	// growthLargest is how many organizations there are at scale 1.
	growthLargest = 100_000
)

// growthCounts are the numbers of organizations that are compared with the first one, a tenth of the next.
func (b *bench) growthCounts() (counts []uint64) {
	largest := growthLargest * b.Scale
	first := uint64(100)
	if largest < 1_000 {
		first = 10
	}
	counts = []uint64{first, 10 * first}
	for n := 100 * first; float64(n) <= largest; n *= 10 {
		counts = append(counts, n)
	}
	return counts
}

// measureGrowth measures what a server and its store do for one organization or key, or for all, in stores of ever
// more organizations with a key each, in turns with the store of the fewest.
func (b *bench) measureGrowth(ctx context.Context) error {
	counts := b.growthCounts()
	few, err := b.openTenants(ctx, counts[0])
	if err != nil {
		return err
	}
	defer few.close()
	for _, count := range counts[1:] {
		if err := b.compareTenants(ctx, few, count); err != nil {
			return fmt.Errorf("%d organizations: %w", count, err)
		}
	}
	return nil
}

func (b *bench) compareTenants(ctx context.Context, few *tenants, count uint64) error {
	many, err := b.openTenants(ctx, count)
	if err != nil {
		return err
	}
	defer many.close()
	ours := append(many.figures(), many.commands(b)...)
	for i, reference := range append(few.figures(), few.commands(b)...) {
		measured, err := b.compare(ctx, ours[i].run, reference.run)
		if err != nil {
			return fmt.Errorf("%s: %w", reference.name, err)
		}
		r := comparison("growth", fmt.Sprintf("%d organizations: %s", count, reference.name),
			fmt.Sprintf("%d", few.count), measured[0], measured[1])
		if !reference.grows {
			r = r.atMost(mostGrowth)
		}
		b.report.add(r)
	}
	return nil
}

// tenants are a store of many small organizations, and what a server has of it.
type tenants struct {
	generator
	store  *clickhouse.Server
	dir    string
	keys   keys.Store
	view   *snapshot.View
	engine *olap.Engine // of a server that runs for a while

	state any    // of the keys
	added uint64 // rows and keys
	asked uint64 // questions

	purged uint64 // organizations
}

func (b *bench) openTenants(ctx context.Context, count uint64) (*tenants, error) {
	t := &tenants{generator: generator{class{"tenant", count, tenantRuns}, world{until: b.Until}}}
	t.dir = filepath.Join(b.folder.Dir, fmt.Sprintf("tenants-%d", count))
	var err error
	if t.store, err = b.openStore(ctx, t.dir); err != nil {
		return nil, err
	}
	if err := t.load(ctx, b); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tenants) close() { closeStore(t.store, t.dir) }

// load fills the store, with keys that were all used a moment ago.
func (t *tenants) load(ctx context.Context, b *bench) error {
	db, err := t.store.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := schema.Own.Up(ctx, db); err != nil {
		return err
	}
	loading := *b
	loading.store, loading.world = t.store, t.world
	if err := loading.loadClasses(ctx, []class{t.class}, ""); err != nil {
		return err
	}
	conn := t.store.Conn()
	for _, statement := range []string{
		"INSERT INTO " + schema.TableAPIKeys + " (key_id, organization_id, scopes, secret_hash, created_at)" +
			" SELECT leftPad(toString(number), 16, '0'), " + t.organizationSQL("number") + ", ['" + auth.ScopeAnalyticsRead +
			"'], 'x', now64(3) FROM numbers(%d)",
		"INSERT INTO " + schema.TableAPIKeyUses + " SELECT leftPad(toString(number), 16, '0'), now64(3) FROM numbers(%d)",
	} {
		if err := conn.Exec(ctx, fmt.Sprintf(statement, t.count)); err != nil {
			return err
		}
	}
	if err := t.loadUsage(ctx); err != nil {
		return err
	}
	loading.rest(ctx)
	if err := refreshAndMerge(ctx, conn); err != nil {
		return err
	}
	t.keys, t.view, t.engine = keys.NewStore(conn), snapshot.NewView(conn), newEngine(conn)
	t.view.SetOverviewAge(0)
	return nil
}

// A tenantFigure is something that is measured. grows says that it is for all organizations or keys, by choice.
type tenantFigure struct {
	name  string
	grows bool
	run   side
}

func (t *tenants) figures() []tenantFigure {
	conn := t.store.Conn()
	return []tenantFigure{
		{"a row is inserted", false, t.insert},
		{"a row is inserted, and the sizes of organizations are read", false, func(ctx context.Context) error {
			if err := t.insert(ctx); err != nil {
				return err
			}
			_, err := t.view.Size(ctx, snapshot.Records{Organization: t.first(), Source: schema.TableRuns})
			return err
		}},
		{"no key changed", false, t.changes},
		{"a key is added, and read by a server", false, func(ctx context.Context) error {
			id := fmt.Sprintf("%016d", t.added)
			t.added++
			key := schema.APIKey{KeyID: id, OrganizationID: t.first(), Scopes: []string{auth.ScopeAnalyticsRead},
				CreatedAt: time.Now()}
			if err := t.keys.Put(ctx, key); err != nil {
				return err
			}
			if err := t.changes(ctx); err != nil {
				return err
			}
			_, err := t.keys.AllValid(ctx, []string{id}, time.Now())
			return err
		}},
		{"keys of an organization are listed", false, func(ctx context.Context) error {
			_, err := t.keys.List(ctx, t.organization(t.count/2))
			return err
		}},
		{"a key is looked up", true, func(ctx context.Context) error {
			_, err := t.keys.Valid(ctx, "unknown", time.Now())
			return err
		}},
		{"all keys are read at a start", true, func(ctx context.Context) error {
			now := time.Now()
			return t.keys.Used(ctx, now.Add(-24*time.Hour), now, func(schema.APIKeyUse) {})
		}},
		{"a question over a year that is not cached", false, func(ctx context.Context) error {
			t.asked++
			return t.ask(ctx, t.engine, t.asked%t.count)
		}},
		{"the first question that a server gets", true, func(ctx context.Context) error {
			return t.ask(ctx, newEngine(conn), t.count/2)
		}},
	}
}

func (t *tenants) changes(ctx context.Context) error {
	changes, err := t.keys.Changed(ctx, t.state)
	t.state = changes.State
	return err
}

// insert stores a run of one organization.
func (t *tenants) insert(ctx context.Context) error {
	t.added++
	set := t.runSets()[0]
	at := t.rows() + t.added
	return t.store.Conn().Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) %s", schema.TableRuns,
		strings.Join(set.columns, ", "), t.selectRows(set, at, at+1)))
}

func newEngine(conn driver.Conn) *olap.Engine { return olap.NewEngine(conn, []byte("secret")) }

// ask has an engine answer an organization's question over a year.
func (t *tenants) ask(ctx context.Context, engine *olap.Engine, organization uint64) error {
	body := question{model: runsModel, metrics: additive, limit: firstPage}.body(t.lastDays(yearDays))
	q, err := query.Parse(body)
	if err != nil {
		return err
	}
	_, err = engine.Run(ctx, olap.Request{Access: schema.WholeOrganization(t.organization(organization)), Query: q,
		QueryID: uuid.New()})
	return err
}
