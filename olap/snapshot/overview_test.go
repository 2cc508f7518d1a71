package snapshot_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// sized is a store with the sizes of some organizations.
type sized struct {
	t    *testing.T
	held *olaptest.Held
	view *snapshot.View
}

func sizes(t *testing.T) *sized {
	held := olaptest.Hold(olaptest.OpenStore(t).Conn())
	s := &sized{t: t, held: held, view: snapshot.NewView(held)}
	s.view.SetOverviewAge(0)
	return s
}

func (s *sized) exec(statement string) {
	s.t.Helper()
	if err := s.held.Conn.Exec(context.Background(), statement); err != nil {
		s.t.Fatal(err)
	}
}

// count counts rows of runs of organizations of these numbers.
func (s *sized) count(rows, from, to int) {
	s.t.Helper()
	s.exec(fmt.Sprintf("INSERT INTO insert_counters SELECT 'runs', 'org' || toString(number), %d, now64(3)"+
		" FROM numbers(%d, %d)", rows, from, to-from))
}

// want reads the size of an organization. It expects so many rows, and whether the others' were read as well.
func (s *sized) want(organization, rows int, all bool) {
	s.t.Helper()
	before := s.held.Sent()
	of := snapshot.Records{Organization: schema.OrganizationID(fmt.Sprint("org", organization)), Source: schema.TableRuns}
	size, err := s.view.Size(context.Background(), of)
	readsAll := slices.ContainsFunc(s.held.Texts()[before:], func(text string) bool {
		return strings.Contains(text, "sum(rows)") && !strings.Contains(text, "organization_id IN")
	})
	if err != nil || size.Records != uint64(rows) || readsAll != all {
		s.t.Errorf("%d rows, want %d; all are read: %v; %v", size.Records, rows, readsAll, err)
	}
}

// An overview reads the counts of the organizations of which rows came, and is right of all.
func TestSizesOfThoseThatChanged(t *testing.T) {
	s := sizes(t)
	// What the test does not merge stays apart: in a merged part there are more rows that may have come.
	s.exec("ALTER TABLE insert_counters MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1")
	s.count(10_000, 0, 2_000)
	s.want(7, 10_000, true)
	s.want(8, 10_000, false)
	s.count(1, 7, 8)
	s.want(7, 10_001, false)
	s.count(9_999, 3_000, 3_001)
	s.want(3_000, 0, false) // a few
	s.count(1, 3_000, 3_001)
	s.held.After("FROM system.parts", func() { s.count(5, 8, 9) })
	s.want(3_000, 10_000, false)
	s.want(8, 10_005, false)
	s.exec("OPTIMIZE TABLE insert_counters FINAL")
	s.want(9, 10_000, false)
	s.exec("DELETE FROM insert_counters WHERE organization_id = 'org9'")
	s.want(9, 0, true)
	s.count(20_000, 4_000, 10_000) // too many rows
	s.want(9_999, 20_000, true)
	for length, all := range map[int]bool{10: false, 64: true} { // too long a statement
		s.exec(fmt.Sprintf("INSERT INTO insert_counters SELECT 'runs', leftPad(toString(number), %d, ':'), 1, now64(3)"+
			" FROM numbers(4_000)", length))
		s.want(9_999, 20_000, all)
	}
}

// Conflicts of attribution records are known with the next overview, although no row of their organization came, and
// are forgotten when they are gone.
func TestConflictsAreReadEveryTime(t *testing.T) {
	s := sizes(t)
	s.count(1, 0, 2)
	conflicts := func() (found [2]bool) {
		t.Helper()
		for i := range found {
			size, err := s.view.Size(context.Background(), snapshot.Records{
				Organization: schema.OrganizationID(fmt.Sprint("org", i)), Source: schema.TableAttributions,
			})
			if err != nil {
				t.Fatal(err)
			}
			found[i] = size.Conflicts
		}
		return found
	}
	if found := conflicts(); found != [2]bool{} {
		t.Errorf("conflicts of %v", found)
	}
	s.exec("DROP VIEW count_conflicting_records")
	s.exec("INSERT INTO conflicting_records (organization_id, kind, id)" +
		" VALUES ('org1', 'attribution', generateUUIDv4()), ('org0', 'run', generateUUIDv4())")
	if found := conflicts(); found != [2]bool{false, true} {
		t.Errorf("conflicts of %v", found)
	}
	s.exec("DELETE FROM conflicting_records WHERE organization_id = 'org1'")
	if found := conflicts(); found != [2]bool{} {
		t.Errorf("conflicts of %v", found)
	}
}

// Whatever comes, is merged and is purged, sizes are what the store has.
func TestSizesAreRight(t *testing.T) {
	s := sizes(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 25 {
		for range random.IntN(4) {
			at := random.IntN(5)
			switch random.IntN(6) {
			case 0:
				s.exec("OPTIMIZE TABLE insert_counters FINAL")
			case 1:
				s.exec(fmt.Sprintf("DELETE FROM insert_counters WHERE organization_id = 'org%d'", at))
			default:
				s.count(random.IntN(9_000), at, 5)
			}
		}
		for organization := range 5 {
			var rows uint64
			if err := s.held.QueryRow(context.Background(), fmt.Sprintf("SELECT sum(rows) FROM insert_counters"+
				" WHERE organization_id = 'org%d'", organization)).Scan(&rows); err != nil {
				t.Fatal(err)
			}
			if rows < 10_000 {
				rows = 0
			}
			size, err := s.view.Size(context.Background(), snapshot.Records{
				Organization: schema.OrganizationID(fmt.Sprint("org", organization)), Source: schema.TableRuns})
			if err != nil || size.Records != rows {
				t.Fatalf("%d rows, want %d, %v; seed %d", size.Records, rows, err, seed)
			}
		}
	}
}

// An overview of before the machine slept is not believed, however short the monotonic clock says that this was.
func TestAnOverviewOfBeforeTheMachineSlept(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	view := snapshot.NewView(conn)
	want := func(conflicts bool) {
		t.Helper()
		size, err := view.Size(t.Context(), snapshot.Records{Organization: "acme", Source: schema.TableAttributions})
		if err != nil || size.Conflicts != conflicts {
			t.Errorf("conflicts: %v, want %v (%v)", size.Conflicts, conflicts, err)
		}
	}
	want(false)
	err := conn.Exec(t.Context(), "INSERT INTO "+schema.TableConflicts+" (organization_id, kind, clock, id) VALUES"+
		" ('acme', '"+schema.ConflictAttribution+"', now64(3), generateUUIDv4())")
	if err != nil {
		t.Fatal(err)
	}
	want(false) // believed for 10 s
	view.Slept(time.Hour)
	want(true)
}
