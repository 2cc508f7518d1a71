package main_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// The names in these tables are import paths below our module, or whole import paths of others. A name that ends
// in "/..." is that package and every package below it.

// arrows says which of our packages the code of a package, without its tests, may import. A package that no row
// names may not exist; a row whose package does not exist yet is allowed.
var arrows = map[string]string{
	"cmd/...": "cmd/internal/... http/... olap/... ingest/... schema deploy/engine",
	// What commands have in common is for clients of a server: it knows no engine.
	"cmd/internal/...": "cmd/internal/... http/client http/client/report olap/cache olap/daterange",

	"http": "http/auth http/conns http/limit ingest/push olap olap/catalog olap/cost olap/failure olap/query olap/trace" +
		" olap/usage schema",
	"http/admin": "http/conns",
	"http/auth":  "olap/backoff olap/elapsed schema",
	// A client is for programs that have nothing else of ours.
	"http/client":        "",
	"http/client/report": "http/client",
	"http/clients":       "",
	"http/conns":         "",
	"http/limit":         "",
	// The only package that knows Redis.
	"http/limit/shared":    "http/limit",
	"http/limit/redistest": "",

	"olap": "olap/cache olap/catalog olap/compile olap/cost olap/cursor olap/exec olap/failure olap/plan olap/query" +
		" olap/rollup olap/snapshot olap/trace olap/value schema schema/sql",
	"olap/audit":              "schema schema/sql",
	"olap/backoff":            "",
	"olap/cache":              "",
	"olap/catalog":            "schema",
	"olap/cells":              "olap/cache olap/elapsed olap/failure olap/parts schema schema/sql",
	"olap/clickhouse":         "olap/clickhouse/native olap/cost olap/failure olap/silence olap/trace deploy/engine",
	"olap/clickhouse/fetch":   "deploy/engine",
	"olap/clickhouse/native":  "",
	"olap/compile":            "olap/catalog olap/daterange olap/plan olap/query olap/value schema schema/sql",
	"olap/conform":            "",
	"olap/cost":               "",
	"olap/cursor":             "olap/value schema",
	"olap/daterange":          "",
	"olap/daterange/genzones": "",
	"olap/doctor":             "olap/doctor/finding olap/failure olap/snapshot schema",
	"olap/doctor/finding":     "",
	"olap/elapsed":            "",
	"olap/exec":               "olap/compile olap/cost olap/failure olap/value schema",
	"olap/failure":            "",
	"olap/keys":               "olap/parts schema schema/sql",
	"olap/maintain":           "olap/backoff schema",
	"olap/orgs":               "schema schema/sql",
	"olap/parts":              "olap/elapsed",
	"olap/plan":               "olap/catalog olap/cursor olap/daterange olap/query schema",
	"olap/query":              "olap/catalog olap/daterange schema",
	"olap/rollup":             "olap/cache olap/failure olap/snapshot olap/trace schema schema/sql",
	"olap/silence":            "",
	"olap/snapshot":           "olap/cache olap/elapsed olap/failure olap/parts olap/trace schema schema/sql",
	"olap/trace":              "olap/cost",
	"olap/usage":              "olap/backoff olap/cost olap/failure olap/query schema schema/sql",
	"olap/value":              "olap/catalog olap/daterange",

	"ingest": "ingest/checkpoint ingest/normalize ingest/purged ingest/source ingest/write olap/trace",

	"ingest/checkpoint":      "ingest/write schema schema/sql",
	"ingest/move":            "ingest/purge olap/cells olap/rollup olap/snapshot schema schema/sql",
	"ingest/normalize":       "schema",
	"ingest/purge":           "ingest/normalize ingest/purged olap/rollup olap/snapshot schema schema/sql",
	"ingest/purged":          "ingest/normalize schema schema/sql",
	"ingest/push":            "ingest/normalize ingest/source ingest/write olap/cache schema",
	"ingest/source":          "ingest/normalize",
	"ingest/source/postgres": "ingest/normalize ingest/source olap/doctor/finding olap/silence schema",
	"ingest/transfer":        "ingest/checkpoint ingest/write schema schema/sql",
	"ingest/verify": "ingest/normalize ingest/purged ingest/source ingest/source/postgres olap/snapshot schema" +
		" schema/sql",
	"ingest/worker": "ingest/... olap/cells olap/doctor/finding olap/rollup olap/snapshot olap/trace schema schema/sql",
	"ingest/write": "ingest/normalize ingest/purge ingest/purged olap/backoff olap/cells olap/failure olap/rollup" +
		" olap/snapshot olap/trace schema schema/sql",

	"schema":        "schema/sql",
	"schema/sql":    "",
	"deploy/engine": "",

	// For tests: see testOnly.
	"olap/clickhouse/clickhousetest": "olap/clickhouse olap/clickhouse/clickhousetest/memory" +
		" olap/clickhouse/clickhousetest/ports olap/clickhouse/native",
	"olap/olaptest": "olap/catalog olap/clickhouse olap/clickhouse/clickhousetest" +
		" olap/clickhouse/clickhousetest/memory olap/conform schema",
	"ingest/source/postgrestest": "olap/clickhouse/clickhousetest/memory olap/clickhouse/clickhousetest/ports",

	"olap/clickhouse/clickhousetest/memory": "",
	"olap/clickhouse/clickhousetest/ports":  "",
	"olap/olaptest/logtest":                 "",
}

// testOnly are packages that only tests may import, each other, and the commands of devCommands.
var testOnly = []string{
	"olap/clickhouse/clickhousetest", "olap/clickhouse/clickhousetest/memory",
	"olap/clickhouse/clickhousetest/ports", "olap/olaptest", "olap/olaptest/logtest",
	"ingest/source/postgrestest", "http/limit/redistest",
	"cmd/internal/harness", "cmd/internal/oracle", "cmd/internal/process", "cmd/internal/trap",
}

// devCommands are commands that are not installed.
var devCommands = []string{"cmd/bench", "cmd/mutants", "cmd/samplesource", "cmd/soak"}

// libraries says which packages may import those of others that decide what a package is for.
var libraries = map[string]string{
	driver: "cmd/... ingest/... olap olap/audit olap/cells olap/clickhouse/... olap/cost olap/exec olap/failure" +
		" olap/keys olap/doctor olap/maintain olap/olaptest olap/orgs olap/parts olap/rollup olap/snapshot olap/trace" +
		" olap/usage",
	fiber:                             "http",
	"github.com/valyala/fasthttp/...": "http",
	"github.com/jackc/pgx/v5/...": "ingest/source/postgres ingest/source/postgrestest cmd/bench cmd/samplesource" +
		" cmd/soak",
	"github.com/golang-migrate/migrate/v4/...": "schema",
	"github.com/ebitengine/purego/...":         "olap/clickhouse/native cmd/bench",
	"github.com/parquet-go/parquet-go/...":     "ingest/source cmd/internal/output",
	"github.com/alecthomas/kong/...":           "cmd/...",
	"go.opentelemetry.io/otel/sdk/...":         "cmd/runlens",
	"go.opentelemetry.io/otel/exporters/...":   "cmd/runlens",
	"github.com/redis/go-redis/v9/...":         "http/limit/shared",
	"github.com/testcontainers/...":            "olap/clickhouse/clickhousetest",
}

// unreachable says what a package may not import, not even through others.
var unreachable = map[string]string{
	"cmd/internal/...": driver + " " + fiber,
	"olap/...":         "http/... ingest/... " + fiber,
	"ingest/...":       "olap/query olap/plan olap/compile http/... " + fiber,
	"schema":           "olap/... ingest/... http/... " + driver + " " + fiber,
	// These packages are pure.
	"olap/catalog":     driver,
	"olap/query":       driver,
	"olap/daterange":   driver,
	"olap/plan":        driver,
	"olap/compile":     driver,
	"olap/cursor":      driver,
	"ingest/normalize": driver + " olap/...",
	// These packages know HTTP only from the standard library, and no store.
	"http/admin": driver + " " + fiber,
	"http/auth":  driver + " " + fiber,
	"http/conns": driver + " " + fiber,
	"http/limit": driver + " " + fiber + " github.com/redis/go-redis/v9/...",
}

const (
	module = "github.com/runlens/runlens/"
	driver = "github.com/ClickHouse/clickhouse-go/v2/..."
	fiber  = "github.com/gofiber/fiber/v2/..."
)

func TestImports(t *testing.T) {
	for _, wrong := range wrongImports(importsOf(t)) {
		t.Error(wrong)
	}
}

// TestImportsCanFail adds one forbidden import at a time to the real ones: each is found.
func TestImportsCanFail(t *testing.T) {
	real := importsOf(t)
	for _, c := range []struct{ from, to, want string }{
		{"olap", "http", "olap may not import http"},
		{"olap", "github.com/gofiber/fiber/v2", "olap may not import github.com/gofiber/fiber/v2"},
		{"olap/snapshot", "olap/compile", "olap/snapshot may not import olap/compile"},
		{"ingest/worker", "olap/query", "ingest/worker may not import olap/query"},
		{"ingest/purge", "http/auth", "ingest/purge may not import http/auth"},
		{"http", "github.com/ClickHouse/clickhouse-go/v2/lib/driver",
			"http may not import github.com/ClickHouse/clickhouse-go/v2/lib/driver"},
		{"http/limit", "github.com/valyala/fasthttp", "http/limit may not import github.com/valyala/fasthttp"},
		{"http", "github.com/redis/go-redis/v9", "http may not import github.com/redis/go-redis/v9"},
		{"http/client", "schema", "http/client may not import schema"},
		{"http/client/report", "olap/daterange", "http/client/report may not import olap/daterange"},
		{"olap/plan", "olap/exec", "olap/plan may not import olap/exec"},
		{"olap/plan", "olap/exec", "olap/plan reaches " + strings.TrimSuffix(driver, "/...")},
		{"schema", "ingest/normalize", "schema reaches ingest/normalize"},
		{"olap/rollup", "olap/compile", "ingest/worker reaches olap/compile"},
		{"cmd/runlens", "olap/olaptest", "cmd/runlens may not import olap/olaptest: it is for tests"},
		{"cmd/internal/console", "olap/usage", "cmd/internal/console may not import olap/usage"},
		{"cmd/sampledata", "cmd/internal/trap", "cmd/sampledata may not import cmd/internal/trap: it is for tests"},
		{"olap/invented", "schema", "olap/invented has no row in the table of imports"},
	} {
		imports := maps.Clone(real)
		imports[c.from] = append(slices.Clone(real[c.from]), c.to)
		if wrong := wrongImports(imports); !slices.Contains(wrong, c.want) {
			t.Errorf("%s imports %s: got %q, want %q among them", c.from, c.to, wrong, c.want)
		}
	}
}

// wrongImports is what the tables forbid of the imports of each package.
func wrongImports(imports map[string][]string) (wrong []string) {
	for from, all := range imports {
		allowed, named := rowOf(from)
		if !named {
			wrong = append(wrong, from+" has no row in the table of imports")
			continue
		}
		for _, to := range all {
			_, ours := rowOf(to)
			switch {
			case ours && !matches(allowed, to), !ours && !libraryAllowed(from, to):
				wrong = append(wrong, fmt.Sprintf("%s may not import %s", from, to))
			case slices.Contains(testOnly, to) && !slices.Contains(testOnly, from) && !slices.Contains(devCommands, from):
				wrong = append(wrong, fmt.Sprintf("%s may not import %s: it is for tests", from, to))
			}
		}
		for rule, forbidden := range unreachable {
			if !matches(rule, from) {
				continue
			}
			for to := range reached(imports, from) {
				if to != from && matches(forbidden, to) {
					wrong = append(wrong, fmt.Sprintf("%s reaches %s", from, to))
				}
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// rowOf is the row of arrows for one of our packages: its own, or else that of the innermost folder.
func rowOf(name string) (allowed string, named bool) {
	if allowed, named = arrows[name]; named {
		return allowed, true
	}
	for folder := name; folder != "."; folder = path.Dir(folder) {
		if allowed, named = arrows[folder+"/..."]; named {
			return allowed, true
		}
	}
	return "", false
}

func libraryAllowed(from, to string) bool {
	for library, users := range libraries {
		if matches(library, to) && !matches(users, from) {
			return false
		}
	}
	return true
}

// reached is a package and all that it imports, also through others of ours.
func reached(imports map[string][]string, from string) map[string]bool {
	seen, todo := map[string]bool{from: true}, []string{from}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		for _, to := range imports[next] {
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return seen
}

// matches reports whether one of the names, with spaces between them, names a package.
func matches(names, name string) bool {
	for n := range strings.FieldsSeq(names) {
		folder, whole := strings.CutSuffix(n, "/...")
		if name == folder || whole && strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return false
}
