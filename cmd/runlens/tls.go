package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheck is how often at most the certificate's files are read again, at a handshake.
const certificateCheck = time.Second

// A certificateFiles is a certificate whose files may be replaced while it is served. Their contents are compared, not
// their times: a new file may have an old time, and a link may lead elsewhere.
type certificateFiles struct {
	certificate, key string
	logger           *slog.Logger
	every            time.Duration

	mu      sync.Mutex
	checked time.Time
	read    [2][]byte // the contents that were judged last, good or not
	valid   *tls.Certificate
	warned  bool // of files that cannot be read
}

// openCertificate reads a certificate chain and its key, in PEM, and serves what the files contain at a handshake.
func openCertificate(certificate, key string, logger *slog.Logger) (*certificateFiles, error) {
	c := &certificateFiles{certificate: certificate, key: key, logger: logger, every: certificateCheck}
	contents, err := c.contents()
	if err == nil {
		err = c.take(contents)
	}
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return c, nil
}

// config is for the server's listener.
func (c *certificateFiles) config() *tls.Config {
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}
}

// get is the certificate for a handshake. Files that are broken, or half replaced, leave the one before, with a
// warning.
func (c *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) >= c.every {
		c.checked = now
		c.refresh()
	}
	return c.valid, nil
}

func (c *certificateFiles) refresh() {
	contents, err := c.contents()
	if err != nil {
		if !c.warned {
			c.logger.Warn("the TLS certificate cannot be read again; the one before stays", "error", err)
		}
		c.warned = true
		return
	}
	c.warned = false
	if bytes.Equal(contents[0], c.read[0]) && bytes.Equal(contents[1], c.read[1]) {
		return
	}
	if err := c.take(contents); err != nil {
		c.logger.Warn("the new TLS certificate cannot be used; the one before stays", "error", err)
		return
	}
	c.logger.Info("serving a new TLS certificate", "not_after", c.valid.Leaf.NotAfter)
}

func (c *certificateFiles) contents() (contents [2][]byte, err error) {
	for i, file := range []string{c.certificate, c.key} {
		if contents[i], err = os.ReadFile(file); err != nil {
			return contents, err
		}
	}
	return contents, nil
}

func (c *certificateFiles) take(contents [2][]byte) error {
	c.read = contents
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err == nil {
		c.valid = &pair
	}
	return err
}
