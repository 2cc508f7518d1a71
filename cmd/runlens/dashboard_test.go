package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the Grafana dashboard again")

// grafana is the dashboard, which TestDashboard generates from shown.
const grafana = "../../deploy/grafana/runlens.json"

// A shownMetric is a metric with the panel that shows it.
type shownMetric struct {
	name, title, unit string
	expression        func(name string) []series
}

// A series is what a panel draws: PromQL and the name of its lines.
type series struct{ expression, legend string }

// of selects what the variables of the dashboard say.
const of = `{job=~"$job",instance=~"$instance"}`

// perSecond draws a counter's rate for each value of labels.
func perSecond(labels ...string) func(string) []series {
	return func(name string) []series {
		return []series{{fmt.Sprintf("sum by (%s) (rate(%s%s[$__rate_interval]))", strings.Join(labels, ", "), name, of),
			legendOf(labels)}}
	}
}

// greatest draws a gauge for each value of labels, of the instance where it is greatest.
func greatest(labels ...string) func(string) []series {
	return func(name string) []series {
		return []series{{fmt.Sprintf("max by (%s) (%s%s)", strings.Join(labels, ", "), name, of), legendOf(labels)}}
	}
}

// ago draws how long ago the instant of a gauge was.
func ago(label string) func(string) []series {
	return func(name string) []series {
		return []series{{fmt.Sprintf("time() - min by (%s) (%s%s > 0)", label, name, of), legendOf([]string{label})}}
	}
}

// quantiles draws the median and the 95th percentile of a histogram for each value of a label.
func quantiles(label string) func(string) []series {
	return func(name string) (drawn []series) {
		for _, q := range []string{"0.5", "0.95"} {
			drawn = append(drawn, series{fmt.Sprintf("histogram_quantile(%s, sum by (le, %s) (rate(%s_bucket%s"+
				"[$__rate_interval])))", q, label, name, of), legendOf([]string{label}) + " " + q})
		}
		return drawn
	}
}

func legendOf(labels []string) string {
	return "{{" + strings.Join(labels, "}} {{") + "}}"
}

// shown has every metric of servers and workers once, in the order of the dashboard. A metric without an expression
// begins a row of panels.
var shown = []shownMetric{
	{title: "Requests"},
	{"runlens_http_requests_total", "Requests by status", "reqps", perSecond("status")},
	{"runlens_http_request_seconds", "Time of a request", "s", quantiles("route")},
	{"runlens_query_stage_seconds", "Time of a query's stages", "s", quantiles("stage")},
	{"runlens_http_limited_total", "Requests answered 429, by limit", "reqps", perSecond("limit")},
	{"runlens_queries_running", "Queries running", "short", greatest("instance")},
	{"runlens_connections_open", "Open connections", "short", greatest("instance")},
	{"runlens_connections_refused_total", "Connections refused, by cap", "cps", perSecond("cap")},
	{"runlens_connections_displaced_total", "Connections displaced", "cps", perSecond("instance")},
	{title: "Copying"},
	{"runlens_ingest_lag_seconds", "Age of the newest row", "s", greatest("table")},
	{"runlens_worker_lag_seconds", "Lag of workers", "s", greatest("kind")},
	{"runlens_worker_certain_until_timestamp_seconds", "Nothing earlier can appear: how long ago", "s", ago("kind")},
	{"runlens_worker_stored_records_total", "Records stored", "rps", perSecond("kind")},
	{"runlens_worker_batches_total", "Batches stored", "ops", perSecond("kind")},
	{"runlens_worker_rejected_records_total", "Records rejected", "rps", perSecond("kind")},
	{"runlens_worker_purged_records_total", "Records of purged people kept out", "rps", perSecond("kind")},
	{"runlens_worker_retries_total", "Attempts made again", "ops", perSecond("instance")},
	{"runlens_worker_reconcile_age_seconds", "Age of the last full comparison", "s", greatest("instance")},
	{"runlens_worker_reconcile_failures", "Full comparisons that failed since", "short", greatest("instance")},
	{"runlens_worker_reconcile_differed_days", "Days that differed", "short", greatest("instance")},
	{"runlens_worker_reconcile_replaced_records_total", "Records replaced", "rps", perSecond("instance")},
	{"runlens_worker_reconcile_missing_records", "Records that the source lacks", "short", greatest("instance")},
	{"runlens_worker_reconcile_refused_deletions", "Deletions refused", "short", greatest("instance")},
	{"runlens_push_records_total", "Records pushed", "rps", perSecond("result")},
	{"runlens_push_inserts_total", "Inserts of pushed records", "ops", perSecond("result")},
	{"runlens_push_waiting_bytes", "Pushed records that wait", "bytes", greatest("instance")},
	{"runlens_conflicting_records", "Records changed against the rules", "short", greatest("record")},
	{title: "Store"},
	{"runlens_rollup_age_seconds", "Age of the rollup's watermark", "s", greatest("instance")},
	{"runlens_rollup_rows_total", "Rows refreshed", "rps", perSecond("instance")},
	{"runlens_rollup_check_age_seconds", "Age of the rollup's comparison", "s", greatest("instance")},
	{"runlens_rollup_check_rounds_total", "Comparisons of the whole rollup", "ops", perSecond("instance")},
	{"runlens_rollup_damages", "Organizations and sources answered from base tables", "short", greatest("instance")},
	{"runlens_rollup_damaged_spans_total", "Differences found in the rollup", "ops", perSecond("instance")},
	{"runlens_rollup_repairs_total", "Repairs of the rollup", "ops", perSecond("instance")},
	{"runlens_damaged_parts", "Damaged parts", "short", greatest("table")},
	{"runlens_compactions_pending", "Partitions to be merged", "short", greatest("instance")},
	{"runlens_maintenance_seconds_total", "Share of a core for maintenance", "percentunit", perSecond("task")},
	{"runlens_maintenance_steps_total", "Steps of maintenance", "ops", perSecond("task")},
	{"runlens_maintenance_failures_total", "Steps of maintenance that failed", "ops", perSecond("task")},
	{"runlens_query_statements_total", "Statements of queries", "ops", perSecond("instance")},
	{"runlens_query_rows_read_total", "Rows read by queries", "rps", perSecond("instance")},
	{"runlens_query_strategies_total", "Queries by what they read", "ops", perSecond("reads", "delta", "reason")},
	{"runlens_query_refuted_total", "Assumptions that did not hold", "ops", perSecond("assumption")},
	{"runlens_store_uptime_seconds", "Time since ClickHouse was started", "s", greatest("instance")},
	{"runlens_store_info", "ClickHouse", "short", greatest("version", "instance")},
	{"runlens_cell_up", "Cells that answer", "bool", greatest("cell", "instance")},
	{title: "Processes"},
	{"runlens_build_info", "runlens", "short", greatest("version", "instance")},
	{"process_cpu_seconds_total", "Cores in use", "short", perSecond("instance")},
	{"process_resident_memory_bytes", "Memory", "bytes", greatest("instance")},
	{"process_open_fds", "Open files", "short", greatest("instance")},
	{"go_goroutines", "Goroutines", "short", greatest("instance")},
	{"runlens_redis_up", "Limits hold over all servers", "bool", greatest("instance")},
	{"runlens_redis_decided_alone_total", "Requests admitted without Redis", "reqps", perSecond("instance")},
	{"runlens_usage_lost_total", "Questions missing in the usage log", "ops", perSecond("instance")},
}

// dashboard is the dashboard in Grafana's JSON.
func dashboard(t *testing.T) []byte {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${datasource}"}
	variable := func(name, label string) object {
		return object{"name": name, "label": label, "type": "query", "datasource": source, "refresh": 2, "multi": true,
			"includeAll": true, "current": object{"text": "All", "value": "$__all"}, "sort": 1,
			"query": object{"query": "label_values(runlens_build_info, " + name + ")", "refId": name}}
	}
	const columns, width, height = 3, 8, 7
	panels, x, y := []object{}, 0, 0
	for _, m := range shown {
		id := len(panels) + 1
		if m.expression == nil {
			if x > 0 {
				x, y = 0, y+height
			}
			panels = append(panels, object{"id": id, "type": "row", "title": m.title, "collapsed": false,
				"gridPos": object{"x": 0, "y": y, "w": columns * width, "h": 1}, "panels": []object{}})
			y++
			continue
		}
		targets := []object{}
		for i, s := range m.expression(m.name) {
			targets = append(targets, object{"refId": string(rune('A' + i)), "expr": s.expression,
				"legendFormat": s.legend, "datasource": source})
		}
		panels = append(panels, object{"id": id, "type": "timeseries", "title": m.title, "description": m.name,
			"datasource": source, "targets": targets,
			"gridPos": object{"x": x, "y": y, "w": width, "h": height},
			// Axes begin at 0, or below where a value is: the newest row may be dated in the future.
			"fieldConfig": object{"defaults": object{"unit": m.unit, "custom": object{"axisSoftMin": 0}},
				"overrides": []object{}}})
		if x += width; x == columns*width {
			x, y = 0, y+height
		}
	}
	text, err := json.MarshalIndent(object{
		"uid": "runlens", "title": "runlens", "tags": []string{"runlens"}, "schemaVersion": 39, "editable": true,
		"refresh": "30s", "time": object{"from": "now-6h", "to": "now"}, "timezone": "browser", "panels": panels,
		"templating": object{"list": []object{
			{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
			variable("job", "Job"), variable("instance", "Instance"),
		}},
	}, "", " ")
	must(t, err)
	return append(text, '\n')
}

// The dashboard in deploy is the one that shown describes.
func TestDashboard(t *testing.T) {
	want := dashboard(t)
	if *update {
		must(t, os.WriteFile(grafana, want, 0o644))
	}
	if got := read(t, grafana); got != string(want) {
		t.Error("deploy/grafana/runlens.json is another one: go test ./cmd/runlens -run TestDashboard -update")
	}
}
