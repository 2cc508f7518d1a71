package clickhouse

import (
	"errors"
	"log/slog"
	"testing"
)

// Nodes with the first identity, and with one that is met later. An engine in a test has no UUID of its server.
func TestSharedStores(t *testing.T) {
	const none = "00000000-0000-0000-0000-000000000000"
	for _, c := range []struct {
		name, first, later string
		shared             bool
	}{
		{"one node", "s1 d1 t1", "s1 d1 t1", true},
		{"two nodes", "s1 d1 t1", "s2 d2 t2", false},
		{"two nodes that share the tables", "s1 d1 t1", "s2 d1 t1", true},
		{"a copied server with tables of its own", "s1 d1 t1", "s1 d2 t2", false},
		{"one node before there is a database", "s1  ", "s1  ", true},
		{"two nodes before there is a database", "s1  ", "s2  ", false},
		{"one node that got its tables", "s1  ", "s1 d1 t1", true},
		{"two nodes, one with a database", "s1 d1 ", "s2  ", false},
		{"two nodes, one with tables", "s1 d1 t1", "s2 d2 ", false},
		{"nodes that share a database without tables", "s1 d1 ", "s2 d1 ", true},
		{"databases without UUIDs", "s1 " + none + " ", "s2 " + none + " ", false},
		{"servers without UUIDs", none + " d1 ", none + " d2 ", false},
	} {
		n := &nodes{logger: slog.New(slog.DiscardHandler), servers: map[string]bool{}}
		if err := n.check(c.first + " 1"); err != nil {
			t.Errorf("%s: the first: %v", c.name, err)
		}
		if err := n.check(c.later + " 2"); errors.Is(err, ErrOtherNode) == c.shared || c.shared && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What is learned of the store later counts from then on.
func TestTheTableIsLearned(t *testing.T) {
	n := &nodes{logger: slog.New(slog.DiscardHandler), servers: map[string]bool{}}
	for _, answer := range []string{"s1   1", "s1 d1 t1 2", "s2 d1 t1 3"} {
		if err := n.check(answer); err != nil {
			t.Errorf("%q: %v", answer, err)
		}
	}
	if err := n.check("s1 d3 t3 4"); !errors.Is(err, ErrOtherNode) {
		t.Errorf("another table: %v", err)
	}
}
