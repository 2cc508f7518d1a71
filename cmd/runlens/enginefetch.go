package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/runlens/runlens/deploy/engine"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/fetch"
)

// engineRegistry is set by the linker of a release (deploy/release/README.md). The sources name no registry.
var engineRegistry string

type engineFetchCmd struct {
	Registry string `env:"RUNLENS_ENGINE_REGISTRY,npm_config_registry" placeholder:"URL" help:"@engine_registry"`
	Dir      string `placeholder:"DIR" help:"@engine_dir"`
	Package  string `arg:"" optional:"" placeholder:"FILE" help:"@engine_package"`
}

func (engineFetchCmd) Help() string {
	return `Fetches the engine's library (about 180 MB, 570 MB unpacked) from a registry of npm, checks its SHA-512,
and puts it where serve, worker and ingest find it. Does nothing where it is already there.

Example:
  runlens engine fetch
  sudo runlens engine fetch --dir /usr/lib/runlens`
}

func (c engineFetchCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	return interruptible(ctx, 0, func(ctx context.Context) error {
		pinned, found := engine.PackageFor(runtime.GOOS, runtime.GOARCH)
		if !found {
			return fmt.Errorf("no engine is published for %s/%s; set RUNLENS_CLICKHOUSE_URL to a ClickHouse server",
				runtime.GOOS, runtime.GOARCH)
		}
		return c.fetch(ctx, pinned, logger, io)
	})
}

func (c engineFetchCmd) fetch(ctx context.Context, pinned engine.Package, logger *slog.Logger, io streams) error {
	if c.Dir == "" {
		var err error
		if c.Dir, err = clickhouse.FetchDir(); err != nil {
			return usageError{err}
		}
	}
	path := clickhouse.FetchedLibrary(c.Dir)
	if _, err := os.Stat(path); err == nil {
		fmt.Fprintf(io.out, "%s is already there\n", path)
		return nil
	}
	source, err := c.open(ctx, pinned, io)
	if err != nil {
		return err
	}
	progress := newProgress(io.err, "fetch", max(0, source.Bytes), logger)
	err = fetch.Install(ctx, source, path, func(read int64) { progress.show(read) })
	progress.end()
	if err = errors.Join(err, source.Close()); err != nil {
		return fmt.Errorf("%s %s: %w", pinned.Name, pinned.Version, err)
	}
	fmt.Fprintln(io.out, path)
	return nil
}

// open opens the package of the file that was named, or that of a registry.
func (c engineFetchCmd) open(ctx context.Context, pinned engine.Package, io streams) (*fetch.Source, error) {
	if c.Package != "" {
		return fetch.FromFile(c.Package, pinned)
	}
	registry := cmp.Or(c.Registry, engineRegistry)
	if registry == "" {
		registry = npmRegistry(ctx)
	}
	if registry == "" {
		return nil, usageError{fmt.Errorf("name an npm registry in RUNLENS_ENGINE_REGISTRY or --registry, or the file of "+
			"%s@%s", pinned.Name, pinned.Version)}
	}
	if pinned.Integrity == "" {
		say(io.err, "no checksum of %s is pinned: it is compared with what the registry states", pinned.Name)
	}
	source, err := fetch.FromRegistry(ctx, registry, pinned)
	if err != nil {
		return nil, fmt.Errorf("fetch %s %s: %w", pinned.Name, pinned.Version, err)
	}
	return source, nil
}

// npmRegistry is the registry that npm is set to; empty without npm.
func npmRegistry(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "npm", "config", "get", "registry").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
