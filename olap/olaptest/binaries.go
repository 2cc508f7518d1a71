package olaptest

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/runlens/runlens/schema"
)

// Additive is a migration such as a newer binary may have beside which older ones go on working: it adds a table, a
// view that fills it, and columns of tables that older binaries write to and read.
const Additive = `-- Works with binaries from 100 on.
CREATE TABLE IF NOT EXISTS newer_counts
(organization_id LowCardinality(String), runs SimpleAggregateFunction(sum, UInt64))
ENGINE = AggregatingMergeTree ORDER BY organization_id;
CREATE MATERIALIZED VIEW IF NOT EXISTS newer_count TO newer_counts AS
SELECT organization_id, count() AS runs FROM runs GROUP BY organization_id;
ALTER TABLE runs ADD COLUMN IF NOT EXISTS newer SimpleAggregateFunction(max, Nullable(String));
ALTER TABLE attributions ADD COLUMN IF NOT EXISTS newer String DEFAULT 'x';
ALTER TABLE agents ADD COLUMN IF NOT EXISTS newer SimpleAggregateFunction(max, UInt8);
ALTER TABLE rollup_runs ADD COLUMN IF NOT EXISTS newer UInt64 MATERIALIZED cityHash64(organization_id);
ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS newer Array(String) DEFAULT ['all']
`

// Release returns the migrations of an earlier release, by the number of its newest one. Its tables have the granules
// that they had before the size of two of them was changed.
func Release(t testing.TB, newest int) schema.Series { return series(t, newest, nil) }

// Newer returns the migrations of a binary that has, besides those of this one, further ones: SQL by number and name,
// such as 9000_next.
func Newer(t testing.TB, more map[string]string) schema.Series { return series(t, math.MaxInt, more) }

func series(t testing.TB, newest int, more map[string]string) schema.Series {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(schema.Own.Files, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var number int
		if _, err := fmt.Sscanf(path.Base(name), "%d_", &number); err != nil {
			t.Fatal(err)
		}
		if number > newest {
			continue
		}
		content, err := fs.ReadFile(schema.Own.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		if newest < math.MaxInt {
			content = bytes.ReplaceAll(content, []byte("SETTINGS index_granularity = 512, "), []byte("SETTINGS "))
		}
		files[name] = &fstest.MapFile{Data: content}
	}
	for name, sql := range more {
		files[path.Join("migrations", name+".up.sql")] = &fstest.MapFile{Data: []byte(strings.TrimSpace(sql) + "\n")}
		files[path.Join("migrations", name+".down.sql")] = &fstest.MapFile{Data: []byte("DROP VIEW IF EXISTS newer_count;\n" +
			"DROP TABLE IF EXISTS newer_counts\n")}
	}
	return schema.Series{Files: files}
}
