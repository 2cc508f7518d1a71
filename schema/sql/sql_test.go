package sql_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runlens/runlens/schema/sql"
)

func TestSelect(t *testing.T) {
	runs := sql.Select{
		With: []string{"1 AS one"}, Columns: []string{"agent_id", "count() AS n"}, From: sql.Table("runs").Final(true),
		Where: []string{"kind = 1", "n IN" + sql.In(sql.Select{Distinct: true, Columns: []string{"n"}, From: sql.Sent("x")})},
		Group: []string{"agent_id"}, Having: "n > 1",
	}
	all := sql.Select{
		Columns: []string{"*", strings.Repeat("long", 20)},
		From:    sql.Query(sql.Union{runs, {Columns: []string{"1"}}}), Array: "[1] AS a",
		Joins: []sql.Join{{Kind: "ANY LEFT", From: sql.Query(sql.Text("SELECT 2")).As("t"), On: "USING (n)"}},
		Order: []string{"n"}, Limit: "3",
	}
	const want = `SELECT
    *,
    longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong
FROM
(
    WITH 1 AS one
    SELECT agent_id, count() AS n
    FROM runs FINAL
    WHERE organization_id = {organization:String}
        AND kind = 1
        AND n IN
        (
            SELECT DISTINCT n
            FROM x
        )
    GROUP BY agent_id
    HAVING n > 1
    UNION ALL
    SELECT 1
)
ARRAY JOIN [1] AS a
ANY LEFT JOIN
(
    SELECT 2
) AS t USING (n)
ORDER BY n
LIMIT 3`
	if got := all.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := (sql.Select{Columns: []string{"1"}, From: sql.AllOrganizations("a test")("runs")}).String(); got !=
		"SELECT 1\nFROM runs" {
		t.Error(got)
	}
	defer func() {
		if recover() == nil {
			t.Error("all organizations are read, and nobody says why")
		}
	}()
	sql.AllOrganizations("")
}

// In these packages no statement reads a table but through this one, so that none forgets the organization. What they
// read of ClickHouse's own tables has none.
func TestNobodyElseReadsTables(t *testing.T) {
	reads := regexp.MustCompile(`\bFROM\s+(system\.)?`)
	for _, dir := range []string{"..", "../../olap/compile", "../../olap/rollup", "../../olap/keys", "../../olap",
		"../../olap/snapshot", "../../olap/audit", "../../olap/usage", "../../ingest/verify", "../../ingest/purged",
		"../../ingest/checkpoint", "../../ingest/worker", "../../ingest/purge", "../../ingest/transfer",
		"../../olap/cells"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, file := range files {
			// versions.go keeps golang-migrate's bookkeeping, in which there are no rows of an organization, and backup.go
			// restores whole tables FROM a backup.
			if strings.HasSuffix(file, "_test.go") ||
				dir == ".." && slices.Contains([]string{"versions.go", "backup.go"}, filepath.Base(file)) {
				continue
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				for _, found := range reads.FindAllStringSubmatchIndex(text, -1) {
					if found[2] < 0 && !strings.HasSuffix(text[:found[0]], "DISTINCT ") {
						t.Errorf("%s: a statement that Select does not print: %q", set.Position(literal.Pos()), text)
					}
				}
				return true
			})
		}
	}
}
