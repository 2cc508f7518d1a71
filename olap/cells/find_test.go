package cells_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// Slots are those that ClickHouse computes.
func TestSlots(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	for i := range 200 {
		organization := strings.Repeat("o", i%64) + fmt.Sprint(i%10)
		var want uint16
		err := conn.QueryRow(t.Context(), "SELECT cityHash64($1) % 256", organization).Scan(&want)
		if got := cells.SlotOf(schema.OrganizationID(organization)); err != nil || got != int(want) {
			t.Fatalf("%s is in slot %d, want %d (%v)", organization, got, want, err)
		}
	}
}

// stores are new ones by the names of cells.
func stores(t *testing.T, names ...string) map[string]driver.Conn {
	conns := map[string]driver.Conn{}
	for _, name := range names {
		conns[name] = olaptest.OpenStore(t).Conn()
	}
	return conns
}

func of(names ...string) (list []cells.Cell) {
	for i, name := range names {
		list = append(list, cells.Cell{Name: name, Weight: i + 1})
	}
	return list
}

func only(conns map[string]driver.Conn, name string) map[string]driver.Conn {
	return map[string]driver.Conn{name: conns[name]}
}

func count(t *testing.T, p *cells.Placement, want map[string]int) {
	t.Helper()
	for name, n := range want {
		if got := p.Count(name); got != n {
			t.Errorf("%d slots are in %s, want %d", got, name, n)
		}
	}
}

// The first start places by weight, with all cells or not at all. From then on each cell alone says where everything
// is, whatever the file's weights are then.
func TestFind(t *testing.T) {
	conns, list := stores(t, "a", "b", "c"), of("a", "b", "c")
	if _, err := cells.Find(t.Context(), list, only(conns, "a")); !errors.Is(err, cells.ErrUnplaced) {
		t.Fatalf("with one of three cells: %v", err)
	}
	p, err := cells.Find(t.Context(), list, conns)
	if err != nil {
		t.Fatal(err)
	}
	count(t, p, map[string]int{"a": 43, "b": 85, "c": 128}) // 256 * 1/6, 2/6, 3/6
	list[0].Weight = 100
	for name := range conns {
		again, err := cells.Find(t.Context(), list, only(conns, name))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%s says otherwise: %v", name, err)
		}
		if err := p.Admit(t.Context(), name, conns[name]); err != nil {
			t.Error(err)
		}
		if err := cells.Alone(t.Context(), conns[name]); err == nil || !strings.Contains(err.Error(), "the cell "+name) {
			t.Errorf("%s alone: %v", name, err)
		}
	}
	if _, err := cells.Find(t.Context(), of("a", "b"), conns); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("without c: %v", err)
	}
}

// A store that had records before there were cells keeps all organizations. Two such stores are refused, with nothing
// placed.
func TestStoresWithRecords(t *testing.T) {
	conns := stores(t, "a", "b", "c")
	fill := func(name string) {
		t.Helper()
		err := conns[name].Exec(t.Context(), "INSERT INTO api_keys (key_id, organization_id) SELECT 'k', 'acme'")
		if err != nil {
			t.Fatal(err)
		}
	}
	fill("b")
	p, err := cells.Find(t.Context(), of("a", "b", "c"), conns)
	if err != nil {
		t.Fatal(err)
	}
	count(t, p, map[string]int{"a": 0, "b": 256, "c": 0})

	conns = stores(t, "a", "b")
	fill("a")
	fill("b")
	if _, err := cells.Find(t.Context(), of("a", "b"), conns); err == nil || !strings.Contains(err.Error(), "a and b") {
		t.Errorf("two stores with records: %v", err)
	}
	if err := cells.Alone(t.Context(), conns["a"]); err != nil {
		t.Error(err)
	}
}

var errCut = errors.New("cut")

// A cut connection takes so many batches and no more.
type cut struct {
	driver.Conn
	left *int
}

func (c cut) PrepareBatch(
	ctx context.Context, query string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	if *c.left == 0 {
		return nil, errCut
	}
	*c.left--
	return c.Conn.PrepareBatch(ctx, query, options...)
}

// A crash between any two writes of the first placement leaves what the next start completes.
func TestAFirstPlacementThatIsCutShort(t *testing.T) {
	for writes := range 5 {
		conns, list := stores(t, "a", "b"), of("a", "b")
		cutShort, left := map[string]driver.Conn{}, writes
		for name, conn := range conns {
			cutShort[name] = cut{conn, &left}
		}
		_, err := cells.Find(t.Context(), list, cutShort)
		if writes < 4 && !errors.Is(err, errCut) || writes == 4 && err != nil {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		p, err := cells.Find(t.Context(), list, conns)
		if err != nil {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		count(t, p, map[string]int{"a": 86, "b": 170})
		for name, conn := range conns {
			if err := p.Admit(t.Context(), name, conn); err != nil {
				t.Errorf("after %d writes: %v", writes, err)
			}
			if alone, err := cells.Find(t.Context(), list, only(conns, name)); err != nil || !reflect.DeepEqual(alone, p) {
				t.Errorf("after %d writes, %s alone: %v", writes, name, err)
			}
		}
	}
}

// A store that is not the one that organizations were placed in would answer with nothing.
func TestWrongStoresAreRefused(t *testing.T) {
	conns, list := stores(t, "a", "b"), of("a", "b")
	p, err := cells.Find(t.Context(), list, conns)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Admit(t.Context(), "a", conns["b"]); err == nil || !strings.Contains(err.Error(), "is the cell b") {
		t.Errorf("b at the address of a: %v", err)
	}
	empty := olaptest.OpenStore(t).Conn()
	if err := p.Admit(t.Context(), "b", empty); err == nil || !strings.Contains(err.Error(), "emptied") {
		t.Errorf("an empty store for b: %v", err)
	}
	// One that is added has nothing, and says from then on where everything is.
	if err := p.Admit(t.Context(), "c", empty); err != nil {
		t.Fatal(err)
	}
	again, err := cells.Find(t.Context(), of("a", "b", "c"), map[string]driver.Conn{"c": empty})
	if err != nil || !reflect.DeepEqual(again, p) {
		t.Errorf("c says otherwise: %v", err)
	}
}

// Two first starts with different files at once are found out, in one store and across stores.
func TestTwoFirstPlacements(t *testing.T) {
	conns, list := stores(t, "a", "b"), of("a", "b")
	if _, err := cells.Find(t.Context(), list, conns); err != nil {
		t.Fatal(err)
	}
	twice := "INSERT INTO placement (subject, cell, revision) SELECT 'slot:0', 'b', 1"
	if err := conns["a"].Exec(t.Context(), twice); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := cells.Find(t.Context(), list, conns); err == nil ||
			!strings.Contains(err.Error(), "slot:0 was placed in") {
			t.Error(err)
		}
		// Once ClickHouse has merged the two rows, the stores differ.
		if err := conns["a"].Exec(t.Context(), "OPTIMIZE TABLE placement FINAL"); err != nil {
			t.Fatal(err)
		}
	}
}
