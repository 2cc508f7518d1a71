package schema

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Own is the series of this binary.
var Own = Series{embedded}

// A Series is the migrations of one binary: the files NUMBER_NAME.up.sql and NUMBER_NAME.down.sql in the folder
// migrations. Tests make the series of other binaries.
//
// The first line of a migration may be "-- Works with binaries from NUMBER on.": the newest migration that a binary
// must know to work with a store that has this one. Without that line it is the migration's own number.
type Series struct{ Files fs.FS }

var worksWith = regexp.MustCompile(`^-- Works with binaries from (\d+) on\.\n`)

func (s Series) source() (source.Driver, error) {
	files, err := iofs.New(s.Files, "migrations")
	if err != nil {
		return nil, fmt.Errorf("schema: read migrations: %w", err)
	}
	return files, nil
}

func (s Series) open(ctx context.Context, db *sql.DB) (*migrate.Migrate, error) {
	for _, table := range []string{tableFloor, tableVersions} {
		if _, err := db.ExecContext(ctx, fmt.Sprintf(createVersions, table)); err != nil {
			return nil, fmt.Errorf("schema: create version table: %w", err)
		}
	}
	floors, err := s.floors()
	if err != nil {
		return nil, err
	}
	files, err := s.source()
	if err != nil {
		return nil, err
	}
	m, err := migrate.NewWithInstance("embedded", files, "clickhouse", versions{ctx, db, floors})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return m, nil
}

// each calls a function with every migration and its number, in their order.
func (s Series) each(do func(number int, migration string) error) error {
	files, err := s.source()
	if err != nil {
		return err
	}
	version, err := files.First()
	for ; err == nil; version, err = files.Next(version) {
		file, _, err := files.ReadUp(version)
		if err != nil {
			return fmt.Errorf("schema: read migration %d: %w", version, err)
		}
		text, err := io.ReadAll(file)
		file.Close()
		if err == nil {
			err = do(int(version), string(text))
		}
		if err != nil {
			return fmt.Errorf("schema: read migration %d: %w", version, err)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("schema: read migrations: %w", err)
	}
	return nil
}

// floors has for each migration the newest migration that a binary must know to work with a store that has this one
// and all before it.
func (s Series) floors() (map[int]int, error) {
	floors, floor := map[int]int{}, 0
	err := s.each(func(number int, migration string) (err error) {
		oldest := number
		if found := worksWith.FindStringSubmatch(migration); found != nil {
			oldest, err = strconv.Atoi(found[1])
		}
		floor = max(floor, oldest)
		floors[number] = floor
		return err
	})
	return floors, err
}

// latest is the newest migration of the series; 0 for none.
func (s Series) latest() (latest uint, err error) {
	floors, err := s.floors()
	for version := range floors {
		latest = max(latest, uint(version))
	}
	return latest, err
}

// before is the version that golang-migrate resumes from to run version again: the one before it. Versions have gaps.
func (s Series) before(version uint) (int, error) {
	files, err := s.source()
	if err != nil {
		return 0, err
	}
	previous, err := files.Prev(version)
	if errors.Is(err, fs.ErrNotExist) {
		return database.NilVersion, nil
	}
	return int(previous), err
}
