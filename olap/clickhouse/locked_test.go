package clickhouse_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
)

// The tests of this file attack the engine as another user of the machine, who can reach its port and nothing else.

// credentials are what a stranger can try: every way in which ClickHouse takes a user, with the user that needs no
// password and with guesses for the one that does.
var credentials = map[string]func(*http.Request){
	"nothing":                   func(*http.Request) {},
	"basic default":             func(r *http.Request) { r.SetBasicAuth("default", "") },
	"basic default, a password": func(r *http.Request) { r.SetBasicAuth("default", "default") },
	"basic runlens":             func(r *http.Request) { r.SetBasicAuth("runlens", "") },
	"basic runlens, a guess":    func(r *http.Request) { r.SetBasicAuth("runlens", "runlens") },
	"header default":            func(r *http.Request) { r.Header.Set("X-ClickHouse-User", "default") },
	"header runlens, a guess": func(r *http.Request) {
		r.Header.Set("X-ClickHouse-User", "runlens")
		r.Header.Set("X-ClickHouse-Key", "runlens")
	},
	"parameter default": func(r *http.Request) { r.URL.RawQuery += "&user=default&password=" },
	"parameter runlens": func(r *http.Request) { r.URL.RawQuery += "&user=runlens&password=runlens" },
	"bearer":            func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") },
	"empty scheme":      func(r *http.Request) { r.Header.Set("Authorization", "") },
	"pattern":           func(r *http.Request) { r.Header.Set("Authorization", "regex:.*") },
}

func TestPortAnswersNobodyWithoutThePassword(t *testing.T) {
	dir := dataDir(t)
	s := open(t, config(dir))
	addr := published(t, dir).Addr
	passwordFile := filepath.Join(dir, "engine", "password")
	password, err := os.ReadFile(passwordFile)
	if err != nil {
		t.Fatal(err)
	}
	secret := fmt.Sprintf("SELECT file('%s')", passwordFile)
	attempts := []struct{ method, path, query, body string }{
		{method: "GET", path: "/"}, {method: "HEAD", path: "/"}, {method: "OPTIONS", path: "/"},
		{method: "GET", path: "/ping"}, {method: "GET", path: "/replicas_status"}, {method: "GET", path: "/metrics"},
		{method: "GET", path: "/play"}, {method: "GET", path: "/dashboard"}, {method: "GET", path: "/binary"},
		{method: "GET", path: "/merges"}, {method: "GET", path: "/jemalloc"}, {method: "GET", path: "/js/uplot.js"},
		{method: "GET", path: "/api/v1/write"}, {method: "GET", path: "//"}, {method: "GET", path: "/query"},
		{method: "GET", path: "/", query: "?"}, {method: "GET", path: "/" + strings.Repeat("0", 32)},
		{method: "GET", path: "/", query: secret}, {method: "POST", path: "/", body: secret},
		{method: "PUT", path: "/", body: secret}, {method: "POST", path: "/ping", body: secret},
		{method: "POST", path: "/", query: "SELECT 1"},
		{method: "POST", path: "/", query: "INSERT INTO FUNCTION file('/tmp/x', CSV) SELECT 1"},
		{method: "POST", path: "/", body: "SYSTEM SHUTDOWN"}, {method: "POST", path: "/", body: "KILL QUERY WHERE 1"},
	}
	for name, authorize := range credentials {
		for _, attempt := range attempts {
			request, err := http.NewRequest(attempt.method, "http://"+addr+attempt.path, strings.NewReader(attempt.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Close = true // an open connection delays the end of the engine by five seconds
			if attempt.query != "" {
				request.URL.RawQuery = "query=" + url.QueryEscape(attempt.query)
			}
			authorize(request)
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			answer := string(body)
			refused := response.StatusCode == http.StatusNotFound && strings.HasPrefix(answer, "There is no handle") ||
				response.StatusCode == http.StatusNotFound && attempt.method == "HEAD" ||
				response.StatusCode == http.StatusNotImplemented && answer == "" // a method that statements don't use
			if !refused {
				t.Errorf("with %s, %+v is answered %d: %.200s", name, attempt, response.StatusCode, answer)
			}
			if strings.Contains(answer, string(password)) {
				t.Errorf("with %s, %+v contains the password", name, attempt)
			}
		}
	}
	if !works(s) {
		t.Error("the engine does not answer any more")
	}
}

// Bytes that are no HTTP are no way in either, and do the engine no harm.
func TestPortOutlivesOtherProtocols(t *testing.T) {
	dir := dataDir(t)
	s := open(t, config(dir))
	engine := published(t, dir)
	hello := "\x00\x06client\x1a\x07\x00\x07default\x00" // the native protocol's, as user "default" without a password
	for _, bytes := range []string{
		hello, "\x16\x03\x01\x02\x00", "\x00", "SELECT 1\r\n\r\n", "GET /ping\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", engine.Addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(bytes))
		conn.(*net.TCPConn).CloseWrite()
		conn.SetDeadline(time.Now().Add(patience))
		answer, err := io.ReadAll(conn)
		conn.Close()
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %v", bytes, err)
		}
		if strings.Contains(string(answer), " 200 ") {
			t.Errorf("%q is answered %q", bytes, answer)
		}
	}
	if !works(s) || enginePID(t, dir) != engine.PID {
		t.Error("the engine did not survive it")
	}
}

// The port is the only one, and it is on the loopback interface.
func TestEngineListensOnOneLoopbackPort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	dir := dataDir(t)
	open(t, config(dir))
	engine := published(t, dir)
	sockets := listening(t, engine.PID)
	if len(sockets) != 1 || sockets[0] != engine.Addr || !strings.HasPrefix(engine.Addr, "127.0.0.1:") {
		t.Errorf("the engine listens on %q, want %q alone", sockets, engine.Addr)
	}
}

// listening returns the sockets of any family at which the process can be reached.
func listening(t *testing.T, pid int) (addrs []string) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{} // inodes
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(target[len("socket:"):], "[]")] = true
		}
	}
	const listen, unconnected = "0A", "07" // states in /proc/net, of TCP and of UDP
	for _, table := range []struct{ name, state string }{
		{"tcp", listen}, {"tcp6", listen}, {"udp", unconnected}, {"udp6", unconnected},
	} {
		file, err := os.Open("/proc/net/" + table.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // no IPv6 here
		}
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[3] != table.state || !own[fields[9]] {
				continue
			}
			ip, port, _ := strings.Cut(fields[1], ":")
			addr := table.name + " " + fields[1]
			if bytes, err := hex.DecodeString(ip); err == nil && len(bytes) == net.IPv4len {
				number, _ := hex.DecodeString(port)
				v4 := make(net.IP, net.IPv4len)
				binary.NativeEndian.PutUint32(v4, binary.BigEndian.Uint32(bytes)) // the table prints host order
				addr = fmt.Sprintf("%s:%d", v4, binary.BigEndian.Uint16(number))
			}
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// No other user reads a file of the engine, even where the data directory itself is open to all.
func TestAnotherUserReadsNoFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir := dataDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, config(dir))
	as := func(args ...string) error {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd.Run()
	}
	if err := as("ls", dir); err != nil {
		t.Fatalf("the other user cannot even list the data directory: %v", err)
	}
	for _, name := range []string{
		"", "password", "config.xml", "users.xml", "address.json", "engine.log", "engine.out", "engine.lock", "users.lock",
		"store",
	} {
		path := filepath.Join(dir, "engine", name)
		if as("cat", path) == nil || as("ls", path) == nil || as("touch", path) == nil {
			t.Errorf("another user gets at %s", path)
		}
	}
}

// nobody is another user than any that runs tests.
const nobody = 65534

// A folder that another user made before, to own what the engine will put there, is refused.
func TestEngineRefusesAFolderOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make another user's folder")
	}
	c := config(dataDir(t))
	folder := filepath.Join(c.DataDir, "engine")
	if err := errors.Join(os.Mkdir(folder, 0o777), os.Chown(folder, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	s, err := clickhouse.Open(context.Background(), c)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, want %v", err, fs.ErrPermission)
	}
}
