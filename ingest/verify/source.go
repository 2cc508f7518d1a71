package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// A Source is what the store is held against.
type Source interface {
	// Each calls visit with every record, right and wrong ones. A record is valid during the call.
	Each(ctx context.Context, visit func(*source.Record) error) error
	// OfGroups calls visit with at least the records of some groups.
	OfGroups(ctx context.Context, groups []Group, visit func(*source.Record) error) error
	// Unique reports whether every record comes once, and not in several versions.
	Unique() bool
}

// Files are a source of files. Records may come repeatedly and in several versions.
type Files []*source.File

// Each is part of Source.
func (f Files) Each(ctx context.Context, visit func(*source.Record) error) error {
	for _, file := range f {
		if err := eachOf(ctx, file, visit); err != nil {
			return fmt.Errorf("read %s: %w", file.Name, err)
		}
	}
	return nil
}

func eachOf(ctx context.Context, file *source.File, visit func(*source.Record) error) error {
	in, err := file.From(source.Position{})
	if err != nil {
		return err
	}
	defer in.Close()
	for ctx.Err() == nil {
		record, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(record)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// OfGroups is part of Source. Files have no order that would help.
func (f Files) OfGroups(ctx context.Context, _ []Group, visit func(*source.Record) error) error {
	return f.Each(ctx, visit)
}

// Unique is part of Source.
func (f Files) Unique() bool { return false }

// Postgres is an operational database as a source.
type Postgres struct{ *postgres.Database }

// Each is part of Source.
func (p Postgres) Each(ctx context.Context, visit func(*source.Record) error) error {
	for _, kind := range normalize.Kinds {
		if err := p.All(ctx, kind, visit); err != nil {
			return fmt.Errorf("read the %s records: %w", kind, err)
		}
	}
	return nil
}

// OfGroups is part of Source. It is one statement for each organization and kind.
func (p Postgres) OfGroups(ctx context.Context, groups []Group, visit func(*source.Record) error) error {
	days := map[Part][]time.Time{}
	for _, g := range groups {
		var day time.Time
		if g.Day != "" {
			var err error
			if day, err = time.Parse(time.DateOnly, g.Day); err != nil {
				return err
			}
		}
		part := Part{Organization: g.Organization, Kind: g.Kind}
		days[part] = append(days[part], day)
	}
	for part, of := range days {
		if err := p.OfDays(ctx, part.Kind, part.Organization, of, visit); err != nil {
			return fmt.Errorf("read the %s records of %s: %w", part.Kind, part.Organization, err)
		}
	}
	return nil
}

// Unique is part of Source: identities are unique in a database.
func (p Postgres) Unique() bool { return true }
