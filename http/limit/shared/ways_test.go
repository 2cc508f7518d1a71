package shared

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/limit/redistest"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/ports"
)

// TLS works, and who isn't trusted gets neither a name nor a password.
func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var both bytes.Buffer
	pem.Encode(&both, &pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	pem.Encode(&both, &pem.Block{Type: "PRIVATE KEY", Bytes: private})
	file := filepath.Join(t.TempDir(), "both.pem")
	if err := os.WriteFile(file, both.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	free := ports.FreeFor(t, 2)
	redistest.Start(t, "port", free[0], "tls-port", free[1], "tls-cert-file", file, "tls-key-file", file,
		"tls-auth-clients", "no", "requirepass", "hunter2")
	for address, reason := range map[string]string{
		"rediss://:hunter2@127.0.0.1:" + free[1] + "?skip_verify=true": "",
		"rediss://:hunter2@127.0.0.1:" + free[1]:                       "its certificate is not trusted",
		"redis://:hunter2@127.0.0.1:" + free[0]:                        "",
	} {
		s, err := Open(address, long, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if why := s.Try(); why != reason {
			t.Errorf("%s: %q, want %q", address, why, reason)
		}
	}
}

// In a cluster every window is on one node, and windows are on all nodes.
func TestCluster(t *testing.T) {
	free := ports.FreeFor(t, 4)
	var nodes []*redistest.Server
	for i := range 2 {
		nodes = append(nodes, redistest.Start(t, "port", free[i], "cluster-enabled", "yes", "cluster-port", free[2+i],
			"user", documentedRights(t)+" +cluster|slots"))
	}
	nodes[0].Do("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
	nodes[1].Do("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
	nodes[1].Do("CLUSTER", "SET-CONFIG-EPOCH", "2")
	nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", free[1], free[3])
	until(t, "the cluster is up", func() bool {
		return strings.Contains(nodes[0].Do("CLUSTER", "INFO"), "cluster_state:ok") &&
			strings.Contains(nodes[1].Do("CLUSTER", "INFO"), "cluster_state:ok")
	})
	one := "redis://api:hunter2@127.0.0.1:" + free[0]
	rates := three(t, one+"?addr=127.0.0.1:"+free[1], 3, time.Hour)
	for key := range 20 {
		admitted := 0
		for i := range 9 {
			if ok, _ := rates[i%3].Take(fmt.Sprint(key), time.Now()); ok {
				admitted++
			}
		}
		if admitted != 3 {
			t.Errorf("%d of 3 admitted", admitted)
		}
	}
	for i, node := range nodes {
		if node.Do("DBSIZE") == "(integer) 0" {
			t.Errorf("node %d has no window", i)
		}
	}
	// An address of a node alone says what is missing.
	s, log := open(t, one, long)
	for key := range 20 {
		s.Rates("rate", 3, time.Hour).Take(fmt.Sprint(key), time.Now())
	}
	if !strings.Contains(log.String(), "add the parameter addr") {
		t.Errorf("the log says\n%s", log)
	}
}

// documentedRights are those that deploy/README.md names, of a user with the password hunter2.
func documentedRights(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "ACL SETUSER ")
	line, _, ended := strings.Cut(rest, "\n")
	if !found || !ended {
		t.Fatal("deploy/README.md has no line with ACL SETUSER")
	}
	for _, call := range regexp.MustCompile(`redis\.call\('([A-Z]+)'`).FindAllStringSubmatch(source, -1) {
		if !slices.Contains(strings.Fields(line), "+"+strings.ToLower(call[1])) {
			t.Errorf("the script calls %s: %s", call[1], line)
		}
	}
	line = strings.Replace(line, "PASSWORD", "hunter2", 1)
	return line
}

// The rights that deploy/README.md names are all that is needed.
func TestRightsThatAreNeeded(t *testing.T) {
	line := documentedRights(t)
	server := redistest.Start(t, "user", line)
	name, _, _ := strings.Cut(line, " ")
	s, log := open(t, "unix://"+name+":hunter2@"+server.Dir+"/sock?db=1", long)
	r := s.Rates("rate", 1, time.Hour)
	if take(t, r, 2) != 1 || s.away.Load() {
		t.Errorf("these rights don't do: %s\n%s", line, log)
	}
}

// An address that is none is refused without being repeated.
func TestAddresses(t *testing.T) {
	for address, valid := range map[string]bool{
		"redis://u:hunter2@host:6379/1": true, "rediss://host": true, "unix:///run/redis.sock?db=1": true,
		"redis://a:1?addr=b:2&addr=c:3": true, "rediss://host?skip_verify=true&pool_size=5": true,
		"": false, "host:6379": false, "redis:6379": false, "http://u:hunter2@host": false, "redis://u:hunter2@host/x": false,
		"redis://u:hunter2@ho st": false, "redis://host?read_timeout=1h": false, "redis://u:hunter2%zz@host": false,
	} {
		s, err := Open(address, Patience, slog.New(slog.DiscardHandler))
		if (err == nil) != valid {
			t.Errorf("%q: %v", address, err)
		}
		if s != nil {
			s.Close()
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

// The client writes nothing to standard error, where logs are lines of JSON.
func TestNothingElseIsWritten(t *testing.T) {
	const variable = "RUNLENS_TEST_REDIS_AWAY"
	if os.Getenv(variable) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestNothingElseIsWritten$")
		command.Env = append(os.Environ(), variable+"=1")
		var written strings.Builder
		command.Stderr = &written
		if err := command.Run(); err != nil || written.String() != "" {
			t.Errorf("%v, standard error has %q", err, written.String())
		}
		return
	}
	s, err := Open("redis://127.0.0.1:1", Patience, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Try() == "" {
		t.Error("something listens on port 1")
	}
}
