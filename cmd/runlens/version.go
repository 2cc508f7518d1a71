package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/runlens/runlens/olap/clickhouse"
)

// version and linkedCommit are set by the linker; see the Makefile. 'go install' sets neither: init does.
var (
	version      = "dev"
	linkedCommit string
)

// init takes the module's version where no linker set one.
func init() {
	if info, ok := debug.ReadBuildInfo(); ok && version == "dev" {
		version = moduleVersion(info)
	}
}

// moduleVersion is the version that 'go install' was asked for, or dev in a checkout.
func moduleVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "dev"
}

type versionCmd struct{ storeFlags }

func (versionCmd) Help() string {
	return `The engine's version is that of the server in --clickhouse-url, or of the embedded engine's library.

Example:
  runlens version`
}

func (c versionCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	fmt.Fprintf(io.out, "runlens %s\ncommit %s\n", version, commit())
	p, err := c.named()
	if err != nil {
		return err
	}
	return p.each(io, func(f storeFlags) error {
		engine, failed := f.engineVersion(ctx, logger)
		switch {
		case errors.Is(failed, clickhouse.ErrNoLibrary): // which has no version
			engine, failed = "unknown: "+failed.Error(), nil
		case failed != nil:
			engine = "unknown"
		}
		_, err := fmt.Fprintf(io.out, "engine ClickHouse %s\n", engine)
		return cmp.Or(err, failed)
	})
}

// engineVersion is that of the configured server, or else of the embedded engine's library.
func (f storeFlags) engineVersion(ctx context.Context, logger *slog.Logger) (string, error) {
	if f.ClickhouseURL == "" {
		return clickhouse.LibraryVersion(f.EngineLib)
	}
	store, err := openStore(ctx, f, logger)
	if err != nil {
		return "", err
	}
	defer store.Close()
	return store.Version(ctx)
}

// commit is the one set by the linker, or else what Go recorded of the checkout.
func commit() string {
	if linkedCommit != "" {
		return linkedCommit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
