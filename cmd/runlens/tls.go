package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/runlens/runlens/olap/snapshot"
)

const (
	// certificateCheck is the pause between two readings of the certificate's files.
	certificateCheck = time.Second
	// certificatePatience is how long a reading may take before it is reported.
	certificatePatience = 10 * time.Second
	// certificateBytes is more than a chain of certificates has.
	certificateBytes = 1 << 20
)

// A certificateFiles is a certificate whose files may be replaced while it is served. Their contents are compared, not
// their times: a new file may have an old time, and a link may lead elsewhere. Handshakes read no file, so none waits
// for one.
type certificateFiles struct {
	files    [2]string // certificate, key
	logger   *slog.Logger
	patience time.Duration
	readFile func(string) ([]byte, error)

	valid  atomic.Pointer[tls.Certificate]
	read   [2][]byte // the contents that were judged last, good or not
	warned bool      // of files that cannot be read
}

// openCertificate reads a certificate chain and its key, in PEM.
func openCertificate(certificate, key string, logger *slog.Logger) (*certificateFiles, error) {
	c := &certificateFiles{files: [2]string{certificate, key}, logger: logger, patience: certificatePatience,
		readFile: readRegular}
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
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return c.valid.Load(), nil
	}}
}

// follow serves what the files contain until ctx is done.
func (c *certificateFiles) follow(ctx context.Context) {
	for snapshot.Pause(ctx, certificateCheck) == nil {
		c.refresh(ctx)
	}
}

// refresh reads the files once. Files that are broken, half replaced or cannot be read leave the certificate before,
// with a warning. A reading that hangs, as on a file system that is gone, is reported and waited for: there is one at a
// time.
func (c *certificateFiles) refresh(ctx context.Context) {
	type reading struct {
		contents [2][]byte
		err      error
	}
	ended := make(chan reading, 1)
	go func() {
		contents, err := c.contents()
		ended <- reading{contents, err}
	}()
	late := time.After(c.patience)
	for {
		select {
		case <-ctx.Done():
			return
		case <-late:
			c.unreadable(errors.New("reading its files does not end"))
		case r := <-ended:
			if r.err != nil {
				c.unreadable(r.err)
				return
			}
			c.judge(r.contents)
			return
		}
	}
}

// unreadable warns once of files that cannot be read.
func (c *certificateFiles) unreadable(err error) {
	if !c.warned {
		c.logger.Warn("the TLS certificate cannot be read again; the one before stays", "error", err)
	}
	c.warned = true
}

func (c *certificateFiles) judge(contents [2][]byte) {
	c.warned = false
	if bytes.Equal(contents[0], c.read[0]) && bytes.Equal(contents[1], c.read[1]) {
		return
	}
	if err := c.take(contents); err != nil {
		c.logger.Warn("the new TLS certificate cannot be used; the one before stays", "error", err)
		return
	}
	c.logger.Info("serving a new TLS certificate", "not_after", c.valid.Load().Leaf.NotAfter)
}

func (c *certificateFiles) contents() (contents [2][]byte, err error) {
	for i, file := range c.files {
		if contents[i], err = c.readFile(file); err != nil {
			return contents, err
		}
	}
	return contents, nil
}

func (c *certificateFiles) take(contents [2][]byte) error {
	c.read = contents
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err == nil {
		c.valid.Store(&pair)
	}
	return err
}

// readRegular reads a file of at most certificateBytes. It opens no pipe or device for longer than it takes to refuse
// it.
func readRegular(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > certificateBytes:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, certificateBytes)
	}
	return io.ReadAll(io.LimitReader(file, certificateBytes))
}
