package main

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/runlens/runlens"

// The arrows between the rooms. What a package may not import, not even through others, keeps
// data flowing one way; what is pure must neither reach the store nor read the clock.
func TestRoomsKeepTheirDoors(t *testing.T) {
	const (
		driver = "github.com/ClickHouse/clickhouse-go"
		fiber  = "github.com/gofiber/fiber"
	)
	pure := []string{driver, fiber, module + "/http", module + "/ingest"}
	copying := []string{module + "/olap/query", module + "/olap/compile", module + "/http", fiber}
	for room, forbidden := range map[string][]string{
		"schema":           {module + "/olap", module + "/ingest", module + "/http", driver},
		"olap/catalog":     pure,
		"olap/query":       pure,
		"olap/daterange":   pure,
		"olap/cursor":      pure,
		"olap/compile":     pure,
		"ingest/normalize": {driver, fiber, module + "/http", module + "/olap"},
		"olap/exec":        {module + "/http", module + "/ingest", fiber},
		"olap/maintain":    {module + "/http", module + "/ingest", fiber},
		"olap/settle":      {module + "/http", module + "/ingest", fiber},
		"olap/flight":      pure,
		"olap/keys":        {module + "/http", module + "/ingest", fiber},
		"olap/audit":       {module + "/http", module + "/ingest", fiber},
		"olap/clickhouse":  {module + "/http", module + "/ingest", fiber},
		"olap":             {module + "/http", module + "/ingest", fiber},
		"olap/moment":      {module + "/olap/compile", module + "/http", module + "/ingest", fiber},
		"ingest":           copying,
		"ingest/purge":     copying,
		"ingest/verify":    copying,
		"ingest/worker":    copying,
		"ingest/write":     copying,
		"http/admin":       {fiber, driver},
		"http/auth":        {fiber, driver},
		"http/client":      {module + "/olap", module + "/ingest", module + "/schema", fiber, driver},
		"http/limit":       {fiber, driver},
	} {
		for _, dependency := range list(t, "-deps", "./"+room) {
			for _, prefix := range forbidden {
				if strings.HasPrefix(dependency, prefix) {
					t.Errorf("%s reaches %s", room, dependency)
				}
			}
		}
	}
	// The HTTP room knows the driver only through olap.
	for _, room := range []string{"http", "http/auth", "http/limit"} {
		for _, imported := range list(t, "-f", `{{join .Imports "\n"}}`, "./"+room) {
			if strings.HasPrefix(imported, driver) {
				t.Errorf("%s imports %s", room, imported)
			}
		}
	}
}

// A pure package takes its times from its caller.
func TestPurePackagesDoNotReadTheClock(t *testing.T) {
	for _, room := range []string{"catalog", "query", "daterange", "cursor", "compile"} {
		out, err := exec.Command("grep", "-rnE", `time\.(Now|Since|Until)\(`, "../../olap/"+room, "--include=*.go").CombinedOutput()
		if err == nil && !strings.Contains(string(out), "_test.go") {
			t.Errorf("olap/%s reads the clock:\n%s", room, out)
		}
	}
}

func list(t *testing.T, args ...string) []string {
	t.Helper()
	command := exec.Command("go", append([]string{"list"}, args...)...)
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(out))
}
