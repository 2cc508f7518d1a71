package main

import (
	"context"
	"fmt"
	"os"

	"github.com/runlens/runlens/ingest/source/postgres"
)

// databaseFlags name an operational database; worker and verify share them.
type databaseFlags struct {
	Source  string `env:"RUNLENS_SOURCE" placeholder:"URL" help:"@source"`
	Mapping string `env:"RUNLENS_MAPPING" placeholder:"FILE" help:"@mapping"`
}

func (f databaseFlags) open(ctx context.Context) (*postgres.Database, error) {
	mapping, err := f.mapping(ctx)
	if err != nil {
		return nil, err
	}
	return f.openMapped(ctx, mapping)
}

// mapping reads the mapping, once: its file may be a pipe.
func (f databaseFlags) mapping(ctx context.Context) (mapping postgres.Mapping, err error) {
	text := postgres.DefaultMapping
	if f.Mapping != "" {
		content, err := within(ctx, readingMapping, nil,
			func(context.Context) ([]byte, error) { return os.ReadFile(f.Mapping) })
		if err != nil {
			return mapping, usageError{fmt.Errorf("--mapping: %w", err)}
		}
		text = string(content)
	}
	if mapping, err = postgres.ParseMapping(text); err != nil {
		err = usageError{fmt.Errorf("--mapping: %w", err)}
	}
	return mapping, err
}

func (f databaseFlags) openMapped(ctx context.Context, mapping postgres.Mapping) (*postgres.Database, error) {
	database, err := postgres.Open(ctx, f.Source, mapping)
	if err != nil {
		return nil, usageError{fmt.Errorf("--source: %w", err)}
	}
	return database, nil
}
