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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/limit/redistest"
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
	ports := redistest.FreePorts(t, 2)
	redistest.Start(t, "port", ports[0], "tls-port", ports[1], "tls-cert-file", file, "tls-key-file", file,
		"tls-auth-clients", "no", "requirepass", "hunter2")
	for address, reason := range map[string]string{
		"rediss://:hunter2@127.0.0.1:" + ports[1] + "?skip_verify=true": "",
		"rediss://:hunter2@127.0.0.1:" + ports[1]:                       "its certificate is not trusted",
		"redis://:hunter2@127.0.0.1:" + ports[0]:                        "",
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
	ports := redistest.FreePorts(t, 4)
	var nodes []*redistest.Server
	for i := range 2 {
		nodes = append(nodes, redistest.Start(t, "port", ports[i], "cluster-enabled", "yes", "cluster-port", ports[2+i]))
	}
	nodes[0].Do("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
	nodes[1].Do("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
	nodes[1].Do("CLUSTER", "SET-CONFIG-EPOCH", "2")
	nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", ports[1], ports[3])
	until(t, "the cluster is up", func() bool {
		return strings.Contains(nodes[0].Do("CLUSTER", "INFO"), "cluster_state:ok") &&
			strings.Contains(nodes[1].Do("CLUSTER", "INFO"), "cluster_state:ok")
	})
	one := "redis://127.0.0.1:" + ports[0]
	rates := three(t, one+"?addr=127.0.0.1:"+ports[1], 3, time.Hour)
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
