package clickhousetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	connections "github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/ports"
	"github.com/runlens/runlens/olap/clickhouse/native"
)

// nodeVariable makes the test binary a node.
const nodeVariable = "RUNLENS_TEST_NODE"

// A Node is a ClickHouse of its own with ports for both protocols, as a server that runs elsewhere.
type Node struct {
	Dir, TCP, HTTP string // the data directory, and a port for each protocol

	cmd *exec.Cmd
}

// A NodeConfig says how a Node is configured.
type NodeConfig struct {
	Name string // its display name
	// Profiles and Users are XML within the elements of their names in the users' configuration, besides the profile and
	// the user default. Server is XML of the server's configuration.
	Profiles, Users, Server string
}

const nodeServer = `<clickhouse>
    <users_config>%s/users.xml</users_config>
    <listen_host>127.0.0.1</listen_host>
    <tcp_port>%s</tcp_port>
    <http_port>%s</http_port>
    <display_name>%s</display_name>
    <background_pool_size>2</background_pool_size>
    <background_schedule_pool_size>4</background_schedule_pool_size>
    %s
</clickhouse>
`

// NodeUser is a user of every Node with its password, as in a URL: without one, the driver authenticates by
// certificates over TLS.
const NodeUser = "tester:x"

const nodeUsers = `<clickhouse>
    <profiles><default/>%s</profiles>
    <quotas><default/></quotas>
    <users>
        <default>
            <password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
        </default>
        <tester>
            <password>x</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
        </tester>
        %s
    </users>
</clickhouse>
`

// An init function makes the test binary a node, as it makes it an embedded engine.
func init() {
	text, ok := os.LookupEnv(nodeVariable)
	if !ok {
		return
	}
	var n Node
	err := json.Unmarshal([]byte(text), &n)
	if err == nil {
		err = n.run()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (n *Node) run() error {
	signal.Ignore(syscall.SIGPIPE)
	if _, err := native.OpenTerminal(); err != nil {
		return err
	}
	query, err := native.Load(Library())
	if err != nil {
		return err
	}
	_, err = query("--path", filepath.Join(n.Dir, "store"), "--config-file", filepath.Join(n.Dir, "config.xml"),
		"--log-level=warning", "--interactive", "--disable_suggestion", "--history_file="+filepath.Join(n.Dir, "history"),
		"--query", "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP")
	return err
}

// NewNode starts a Node, which ends with Stop; Remove also removes its data.
func NewNode(config NodeConfig) (*Node, error) {
	dir, err := memory.NewDir("runlens-engine-")
	if err != nil {
		return nil, err
	}
	n := &Node{Dir: dir}
	free, err := ports.Free(2)
	if err != nil {
		return nil, err
	}
	n.TCP, n.HTTP = free[0], free[1]
	for file, text := range map[string]string{
		"config.xml": fmt.Sprintf(nodeServer, dir, n.TCP, n.HTTP, config.Name, config.Server),
		"users.xml":  fmt.Sprintf(nodeUsers, config.Profiles, config.Users),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return n, n.Start()
}

// Start starts a Node again after Stop.
func (n *Node) Start() error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	n.cmd = exec.Command(os.Args[0])
	n.cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	n.cmd.Stderr = os.Stderr
	return n.cmd.Start()
}

// Stop kills the Node.
func (n *Node) Stop() {
	n.cmd.Process.Kill()
	n.cmd.Wait()
}

// Remove kills the Node and removes its data.
func (n *Node) Remove() {
	n.Stop()
	os.RemoveAll(n.Dir)
}

// Addr is where the Node speaks the protocol of a URL's scheme.
func (n *Node) Addr(scheme string) string {
	if scheme == "clickhouse" {
		return net.JoinHostPort("127.0.0.1", n.TCP)
	}
	return net.JoinHostPort("127.0.0.1", n.HTTP)
}

// Answers waits until the Node takes statements.
func (n *Node) Answers(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := n.dial()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the node does not answer: %v", err)
		}
	}
}

func (n *Node) dial() error {
	response, err := http.Get("http://" + n.Addr("http") + "/ping")
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", n.Addr("clickhouse"))
	if err != nil {
		return errors.Join(err, response.Body.Close())
	}
	return errors.Join(conn.Close(), response.Body.Close())
}

// Direct is a connection to the Node as the user default, without the product's checks.
func (n *Node) Direct(t testing.TB) connections.Conn {
	t.Helper()
	conn, err := driver.Open(&driver.Options{Addr: []string{n.Addr("clickhouse")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Do runs statements on the Node.
func (n *Node) Do(t testing.TB, statements ...string) {
	t.Helper()
	conn := n.Direct(t)
	for _, statement := range statements {
		if err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
