package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/limit/shared"
	"github.com/runlens/runlens/olap/trace"
)

// monitoring has the rules of Prometheus, their tests and their runbook.
const monitoring = "../../deploy/prometheus"

// rules are the alerts, by name: their expressions.
func rules(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, monitoring, "alerts.yml")), &file))
	alerts := map[string]string{}
	for _, rule := range file.Groups[0].Rules {
		alerts[rule.Alert] = rule.Expr
	}
	if len(alerts) < 20 {
		t.Fatalf("there are only %d alerts", len(alerts))
	}
	return alerts
}

// Every alert fires in one test of its own and is quiet in another, and has an entry in the runbook.
func TestAlertsAreTestedAndExplained(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Name   string `yaml:"alertname"`
				Alerts []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, monitoring, "alerts_test.yml")), &file))
	fires, quiet, explained := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			if len(c.Alerts) > 0 {
				fires[c.Name] = true
			} else {
				quiet[c.Name] = true
			}
		}
	}
	alerts := rules(t)
	for _, entry := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(read(t, monitoring, "runbook.md"),
		-1) {
		if explained[entry[1]] = true; alerts[entry[1]] == "" {
			t.Errorf("the runbook explains %s, which is no alert", entry[1])
		}
	}
	for name := range alerts {
		if !fires[name] || !quiet[name] || !explained[name] {
			t.Errorf("%s: fires in a test: %t, is quiet in one: %t, is in the runbook: %t",
				name, fires[name], quiet[name], explained[name])
		}
	}
}

// promtool finds nothing wrong with the rules, the configuration and the dashboard, and the tests of the rules pass.
func TestPromtool(t *testing.T) {
	promtool := installed(t, "promtool")
	dir := t.TempDir()
	for _, name := range []string{"alerts.yml", "alerts_test.yml", "prometheus.yml"} {
		text := strings.ReplaceAll(read(t, monitoring, name), "/run/secrets/", "") // where compose.yaml puts the token
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	// The dashboard's expressions, with values for Grafana's variables, as rules that record them.
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", "a", "$instance", "b")
	recorded := "groups:\n  - name: dashboard\n    rules:\n"
	for i, expression := range drawn() {
		recorded += fmt.Sprintf("      - { record: 'panel:%d', expr: '%s' }\n", i, variables.Replace(expression))
	}
	for name, text := range map[string]string{"dashboard.yml": recorded, "admin_token": "secret"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, args := range []string{"check rules alerts.yml", "check rules dashboard.yml", "check config prometheus.yml",
		"test rules alerts_test.yml"} {
		command := exec.Command(promtool, strings.Fields(args)...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args, err, out)
		}
	}
}

// drawn are all expressions of the dashboard.
func drawn() (expressions []string) {
	for _, m := range shown {
		if m.expression != nil {
			for _, s := range m.expression(m.name) {
				expressions = append(expressions, s.expression)
			}
		}
	}
	return expressions
}

// metricNames returns the names of a collector's metrics, those without a value too.
func metricNames(collectors ...prometheus.Collector) (names []string) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		for _, c := range collectors {
			c.Describe(descriptions)
		}
		close(descriptions)
	}()
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	for description := range descriptions {
		names = append(names, name.FindStringSubmatch(description.String())[1])
	}
	return names
}

// The dashboard shows every metric of a server and of a worker, and nothing names one that neither has. promtool finds
// that the names keep Prometheus' conventions.
func TestMetricsAreShownAndNamedRight(t *testing.T) {
	flags := store(t)
	_, key := createKey(t, flags)
	logger := slog.New(slog.DiscardHandler)
	a, err := startApp(t.Context(), serveWith(t, flags...), logger)
	must(t, err)
	defer a.Close(context.Background())
	content := a.adminContent(&operatorAPI{}, httpapi.NewMetrics())
	content.Metrics = append(content.Metrics, workerAdmin([]*cellWorker{newCellWorker(oneCell, storeFlags{},
		nil, trace.Tracer{},
		logger)}).Metrics...)
	exposed := metricNames(append(content.Metrics, &shared.Store{}, (&cell{name: "a"}).collector())...)

	post(t, "http://"+a.Address(), key, `{"model":"agent_runs","metrics":["run_count"],
		"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`)
	_, metrics := get(t, "http://"+a.admin.Address()+"/metrics", "")
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(metrics, -1) {
		exposed = append(exposed, name[1])
	}
	named := strings.Join(drawn(), "\n")
	for _, expression := range rules(t) {
		named += "\n" + expression
	}
	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, name := range regexp.MustCompile(`\b(runlens|process|go)_\w+`).FindAllString(named, -1) {
		if !slices.Contains(exposed, name) && !slices.Contains(exposed, histogram.ReplaceAllString(name, "")) {
			t.Errorf("%s is in a rule or in the dashboard, and nobody exposes it", name)
		}
	}
	for _, name := range exposed {
		isShown := slices.ContainsFunc(shown, func(m shownMetric) bool { return m.name == name })
		if strings.HasPrefix(name, "runlens_") && !isShown {
			t.Errorf("the dashboard lacks %s", name)
		}
	}
	t.Run("conventions", func(t *testing.T) {
		command := exec.Command(installed(t, "promtool"), "check", "metrics")
		command.Stdin = strings.NewReader(metrics)
		if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool check metrics: %v\n%s", err, out)
		}
	})
}
