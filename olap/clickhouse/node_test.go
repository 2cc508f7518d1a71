package clickhouse_test

import (
	"context"
	"sync"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

type node = clickhousetest.Node

// nodes are two nodes that know nothing of each other. The tests of this binary share them.
var nodes = sync.OnceValues(func() (started [2]*node, err error) {
	for i, name := range []string{"left", "right"} {
		if started[i], err = clickhousetest.NewNode(clickhousetest.NodeConfig{
			Name: name, Users: limitedUser, Profiles: limitedProfile,
		}); err != nil {
			break
		}
		atExit = append(atExit, started[i].Remove)
	}
	return started, err
})

// limited is a user who may have four statements at once.
const (
	limitedUser = "<limited><password>x</password><networks><ip>::/0</ip></networks><profile>limited</profile>" +
		"<quota>default</quota></limited>"
	limitedProfile = "<limited><max_concurrent_queries_for_user>4</max_concurrent_queries_for_user></limited>"
)

// atExit is done when all tests have run.
var atExit []func()

func twoNodes(t *testing.T) (left, right *node) {
	t.Helper()
	both, err := nodes()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range both {
		n.Answers(t)
	}
	return both[0], both[1]
}

// value reads one value on one node.
func value[T any](t *testing.T, n *node, statement string) (v T) {
	t.Helper()
	if err := n.Direct(t).QueryRow(context.Background(), statement).Scan(&v); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return v
}
