package clickhouse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	connections "github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// nodeVariable makes the test binary a node: ClickHouse with ports for both protocols, as a server that runs elsewhere.
const nodeVariable = "RUNLENS_TEST_NODE"

// A node is a ClickHouse of its own.
type node struct {
	Dir, TCP, HTTP string // the data directory, and a port for each protocol

	cmd *exec.Cmd
}

const nodeConfig = `<clickhouse>
    <users_config>%s/users.xml</users_config>
    <listen_host>127.0.0.1</listen_host>
    <tcp_port>%s</tcp_port>
    <http_port>%s</http_port>
    <display_name>%s</display_name>
    <background_pool_size>2</background_pool_size>
    <background_schedule_pool_size>4</background_schedule_pool_size>
</clickhouse>
`

// nodeUser and its password are in nodeUsers: the name and the password of a URL.
const nodeUser = "tester:x"

// nodeUsers has a user with a password: without one, the driver authenticates by certificates over TLS.
const nodeUsers = `<clickhouse>
    <profiles><default/></profiles>
    <quotas><default/></quotas>
    <users>
        <default>
            <password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
        </default>
        <tester>
            <password>x</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
        </tester>
    </users>
</clickhouse>
`

func (n node) run() int {
	signal.Ignore(syscall.SIGPIPE)
	err := clickhouse.OpenTerminal()
	if err == nil {
		query, failure := clickhouse.LoadLibrary(clickhousetest.Library())
		if err = failure; err == nil {
			_, err = query("--path", filepath.Join(n.Dir, "store"), "--config-file", filepath.Join(n.Dir, "config.xml"),
				"--log-level=warning", "--interactive", "--disable_suggestion", "--history_file=/dev/null",
				"--query", "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP")
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// newNode starts a node with the display name. It ends with the test binary, or by stop.
func newNode(name string) (*node, error) {
	dir, err := clickhousetest.DataDir()
	if err != nil {
		return nil, err
	}
	n := &node{Dir: dir}
	for _, port := range []*string{&n.TCP, &n.HTTP} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		_, *port, _ = net.SplitHostPort(listener.Addr().String())
	}
	for file, text := range map[string]string{
		"config.xml": fmt.Sprintf(nodeConfig, dir, n.TCP, n.HTTP, name), "users.xml": nodeUsers,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *node) start() error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	n.cmd = exec.Command(os.Args[0])
	n.cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	n.cmd.Stderr = os.Stderr
	return n.cmd.Start()
}

func (n *node) stop() {
	n.cmd.Process.Kill()
	n.cmd.Wait()
}

func (n *node) remove() {
	n.stop()
	os.RemoveAll(n.Dir)
}

// addr is where the node speaks the protocol of a URL's scheme.
func (n *node) addr(scheme string) string {
	if scheme == "clickhouse" {
		return net.JoinHostPort("127.0.0.1", n.TCP)
	}
	return net.JoinHostPort("127.0.0.1", n.HTTP)
}

// answers waits until the node takes statements.
func (n *node) answers(t *testing.T) {
	t.Helper()
	eventually(t, "the node answers", func() bool {
		response, err := http.Get("http://" + n.addr("http") + "/ping")
		if err == nil {
			response.Body.Close()
		}
		return err == nil && dialable(n.addr("clickhouse"))
	})
}

func dialable(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// nodes are two nodes that know nothing of each other. The tests of this binary share them.
var nodes = sync.OnceValues(func() (started [2]*node, err error) {
	for i, name := range []string{"left", "right"} {
		if started[i], err = newNode(name); err == nil {
			err = started[i].start()
		}
		if err != nil {
			break
		}
		atExit = append(atExit, started[i].remove)
	}
	return started, err
})

// atExit is done when all tests have run.
var atExit []func()

func twoNodes(t *testing.T) (left, right *node) {
	t.Helper()
	both, err := nodes()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range both {
		n.answers(t)
	}
	return both[0], both[1]
}

// direct is a connection to one node, without the product's checks.
func (n *node) direct(t *testing.T) connections.Conn {
	t.Helper()
	conn, err := driver.Open(&driver.Options{Addr: []string{n.addr("clickhouse")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// do runs statements on one node.
func (n *node) do(t *testing.T, statements ...string) {
	t.Helper()
	conn := n.direct(t)
	for _, statement := range statements {
		if err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// value reads one value on one node.
func value[T any](t *testing.T, n *node, statement string) (v T) {
	t.Helper()
	if err := n.direct(t).QueryRow(context.Background(), statement).Scan(&v); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return v
}
