package main

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func replace(t *testing.T, path, by string) {
	t.Helper()
	content, err := os.ReadFile(by)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// served is the certificate that a server shows at a handshake.
func served(t *testing.T, address string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return string(conn.ConnectionState().PeerCertificates[0].Raw)
}

// A certificate is replaced by replacing its files. While they are broken, half replaced or gone, the one before
// is served, with one warning for each state.
func TestCertificateIsReadAgain(t *testing.T) {
	certificate, key := selfSigned(t)
	other, otherKey := selfSigned(t)
	var log bytes.Buffer
	files, err := openCertificate(certificate, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	files.every = 0
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(tls.NewListener(listener, files.config()))
	defer server.Close()
	address := listener.Addr().String()

	first := served(t, address)
	warnings := 0
	for name, change := range map[string]func(){
		"broken":        func() { os.WriteFile(certificate, []byte("no certificate"), 0o600) },
		"half replaced": func() { replace(t, certificate, other) },
		"gone":          func() { os.Remove(certificate) },
	} {
		change()
		warnings++
		for range 3 {
			if served(t, address) != first {
				t.Errorf("%s: another certificate", name)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != warnings {
			t.Errorf("%s: %d warnings, want %d\n%s", name, n, warnings, &log)
		}
	}
	replace(t, certificate, other)
	replace(t, key, otherKey)
	second := served(t, address)
	if second == first {
		t.Errorf("the certificate before is still served\n%s", &log)
	}
	if n := strings.Count(log.String(), "serving a new TLS certificate"); n != 1 {
		t.Errorf("%d times logged\n%s", n, &log)
	}
}

// The same for the whole server, which reads the files about once a second.
func TestServeReadsItsCertificateAgain(t *testing.T) {
	certificate, key := selfSigned(t)
	other, otherKey := selfSigned(t)
	base, _, _ := started(t, append(store(t), "--tls-cert", certificate, "--tls-key", key)...)
	address := strings.TrimPrefix(base, "http://")
	first := served(t, address)
	replace(t, certificate, other)
	replace(t, key, otherKey)
	for deadline := time.Now().Add(30 * time.Second); served(t, address) == first; {
		if time.Now().After(deadline) {
			t.Fatal("the certificate before is still served")
		}
	}
}
