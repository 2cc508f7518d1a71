package main

import (
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	compose "github.com/compose-spec/compose-go/v2/cli"
	composed "github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/source/postgrestest"
)

// composition reads deploy/compose.yaml as docker compose does, with the variables of the example but for one.
func composition(t *testing.T, without string) (*composed.Project, error) {
	t.Helper()
	var env []string
	for line := range strings.Lines(read(t, "../../deploy/compose/example.env")) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, without+"=") {
			env = append(env, line)
		}
	}
	options, err := compose.NewProjectOptions([]string{"../../deploy/compose.yaml"}, compose.WithEnv(env),
		compose.WithResolvedPaths(true))
	must(t, err)
	return options.LoadProject(t.Context())
}

// The composition is one that docker compose accepts. Its commands, health checks and variables are ones that runlens
// has, and its files are there.
func TestCompose(t *testing.T) {
	project, err := composition(t, "")
	must(t, err)
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type == composed.VolumeTypeBind {
				if info, err := os.Stat(volume.Source); err != nil || !info.Mode().IsRegular() {
					t.Errorf("%s mounts %s, which is no file: %v", name, volume.Source, err)
				}
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes port %s to other hosts", name, port.Published)
			}
		}
		for _, secret := range service.Secrets {
			if source := project.Secrets[secret.Source]; source.Environment == "" {
				t.Errorf("%s uses the secret %s, which comes from nowhere", name, secret.Source)
			}
			if service.ReadOnly {
				t.Errorf("%s is read-only: docker compose can't copy the secret %s into it", name, secret.Source)
			}
		}
		if name != "serve" && name != "worker" {
			continue
		}
		if !service.ReadOnly || strings.Join(service.CapDrop, "") != "ALL" || service.User != "" {
			t.Errorf("%s is not bounded as the image is", name)
		}
		known := variables(t)
		for variable, value := range service.Environment {
			if strings.HasPrefix(variable, "RUNLENS_") {
				if !known[variable] {
					t.Errorf("%s has the variable %s, which nothing reads", name, variable)
				}
				t.Setenv(variable, *value)
			}
		}
		health := service.HealthCheck.Test
		if health[0] != "CMD" || health[1] != "/bin/runlens" {
			t.Fatalf("%s has the health check %q", name, health)
		}
		for _, args := range [][]string{service.Command, health[2:]} {
			parser, err := newParser(&cli{})
			must(t, err)
			if _, err := parser.Parse(args); err != nil {
				t.Errorf("%s: runlens %q: %v", name, args, err)
			}
		}
	}
	// Whatever asks a query needs the password, which the container has in a file that clickhouse-client does not read.
	clickhouse := project.Services["clickhouse"]
	check := strings.Join(clickhouse.HealthCheck.Test, " ")
	if clickhouse.Environment["CLICKHOUSE_PASSWORD_FILE"] == nil || !strings.HasSuffix(check, "/ping") {
		t.Errorf("clickhouse has the health check %q", check)
	}
	for _, variable := range []string{"POSTGRES_PASSWORD", "CLICKHOUSE_PASSWORD", "RUNLENS_ADMIN_TOKEN"} {
		if _, err := composition(t, variable); err == nil || !strings.Contains(err.Error(), "choose one in .env") {
			t.Errorf("without %s: %v", variable, err)
		}
	}
	logs := xml.NewDecoder(strings.NewReader(read(t, "../../deploy/compose/clickhouse-logs.xml")))
	for {
		if _, err := logs.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// The sample writer works on the tables that a worker reads by default, twice.
func TestSampleWriter(t *testing.T) {
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, postgrestest.New(t).URL())
	must(t, err)
	defer conn.Close(ctx)
	writer, repeats := strings.CutSuffix(read(t, "../../deploy/compose/writer.sql"), "\n\\watch 1\n")
	if !repeats {
		t.Fatal("the writer does not go on")
	}
	for _, statements := range []string{read(t, "../../ingest/source/postgres/layout.sql"), writer, writer} {
		if _, err := conn.Exec(ctx, statements); err != nil {
			t.Fatal(err)
		}
	}
	var written string
	const count = "SELECT concat((SELECT count(*) FROM agents), ' ', (SELECT count(*) FROM runs), ' '," +
		" (SELECT count(*) FROM attributions))"
	if err := conn.QueryRow(ctx, count).Scan(&written); err != nil || written != "5 2 2" {
		t.Errorf("agents, runs and attribution records written: %s, want 5 2 2: %v", written, err)
	}
}
