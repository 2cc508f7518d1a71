package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

func replace(t *testing.T, path, by string) {
	t.Helper()
	content, err := os.ReadFile(by)
	if err == nil {
		err = os.WriteFile(path+".new", content, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	must(t, err)
}

// served is the certificate that a server shows at a handshake.
func served(t *testing.T, address string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	must(t, err)
	defer conn.Close()
	return string(conn.ConnectionState().PeerCertificates[0].Raw)
}

// A certificate is replaced by replacing its files. While they are broken, half replaced, gone or no files, the one
// before is served, with one warning for each state.
func TestCertificateIsReadAgain(t *testing.T) {
	certificate, key := selfSigned(t)
	other, otherKey := selfSigned(t)
	original := filepath.Join(t.TempDir(), "original.pem")
	replace(t, original, certificate)
	var log bytes.Buffer
	files, err := openCertificate(certificate, key, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
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
		"a pipe": func() {
			os.Remove(certificate)
			must(t, syscall.Mkfifo(certificate, 0o600))
		},
	} {
		replace(t, certificate, original)
		files.refresh(t.Context())
		change()
		warnings++
		for range 3 {
			files.refresh(t.Context())
			if served(t, address) != first {
				t.Errorf("%s: another certificate", name)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != warnings {
			t.Errorf("%s: %d warnings, want %d\n%s", name, n, warnings, &log)
		}
	}
	log.Reset()
	replace(t, certificate, other)
	replace(t, key, otherKey)
	files.refresh(t.Context())
	second := served(t, address)
	if second == first {
		t.Errorf("the certificate before is still served\n%s", &log)
	}
	if n := strings.Count(log.String(), "serving a new TLS certificate"); n != 1 {
		t.Errorf("%d times logged\n%s", n, &log)
	}
}

// While a reading of the files hangs, handshakes go on, there is one warning, and no other reading.
func TestAReadingThatHangsStopsNoHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		certificate, key := selfSigned(t)
		var log logtest.Buffer
		files, err := openCertificate(certificate, key, slog.New(slog.NewTextHandler(&log, nil)))
		must(t, err)
		mount := make(chan struct{})
		var readings atomic.Int32
		files.readFile = func(path string) ([]byte, error) {
			readings.Add(1)
			<-mount
			return readRegular(path)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			files.follow(ctx)
			close(ended)
		}()
		<-time.After(time.Hour) // of the bubble's clock
		got, err := files.config().GetCertificate(nil)
		if err != nil || got == nil || readings.Load() != 1 || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("%v, %v, %d readings\n%s", got, err, readings.Load(), &log)
		}
		stop()
		<-ended
		close(mount)
	})
}

// The whole server reads the files about once a second. A pipe in the place of one stops no handshake.
func TestServeReadsItsCertificateAgain(t *testing.T) {
	certificate, key := selfSigned(t)
	other, otherKey := selfSigned(t)
	base, _, _ := started(t, append(store(t), "--tls-cert", certificate, "--tls-key", key)...)
	address := strings.TrimPrefix(base, "http://")
	first := served(t, address)
	os.Remove(key)
	must(t, syscall.Mkfifo(key, 0o600))
	for until := time.Now().Add(3 * certificateCheck); time.Now().Before(until); {
		if served(t, address) != first {
			t.Error("another certificate")
		}
	}
	replace(t, certificate, other)
	replace(t, key, otherKey)
	if !harness.Poll(t.Context(), 30*time.Second, 10*time.Millisecond, func() bool {
		return served(t, address) != first
	}) {
		t.Fatal("the certificate before is still served")
	}
}
