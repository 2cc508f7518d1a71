package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// An Admin is the admin address of a server or a worker.
type Admin struct {
	Address string // host:port
	Token   string // empty for none
}

const (
	// adminTimeout bounds what a page asks of one admin address.
	adminTimeout = 10 * time.Second
	adminBytes   = 4 << 20

	wantsToken = "It wants a token: name the data directory of the server with --data-dir, or the file of its token " +
		"with --admin-token-file, or set RUNLENS_ADMIN_TOKEN."

	// From these ages on a person should look. The rollup is refreshed every few seconds where rows arrive.
	rollupLate = 15 * time.Minute
	workerLate = 5 * time.Minute
)

// An operatorView is what the operator's page shows, a section for each admin address.
type operatorView struct {
	Sections []section
	At       string
}

type section struct {
	Title string
	State string // "good", "look" or "bad"
	Says  string
	Facts []fact
}

// A fact is one line: what it is, and whether a person should look.
type fact struct{ Name, Value, State, About string }

func (c *Console) operator(w http.ResponseWriter, r *http.Request) {
	if len(c.Admin) == 0 {
		c.failure(w, r, http.StatusNotFound, "Start the console with --admin ADDRESS to see the operator's page.")
		return
	}
	c.render(w, "operator.html", page{Title: "Operator", Nav: c.nav("operator")})
}

func (c *Console) operatorStatus(w http.ResponseWriter, r *http.Request) {
	view := &operatorView{At: c.Now().UTC().Format("15:04:05 UTC")}
	for _, admin := range c.Admin {
		view.Sections = append(view.Sections, admin.section(r.Context()))
	}
	c.render(w, "operator-status", view)
}

// section asks one admin address.
func (a Admin) section(ctx context.Context) section {
	s := section{Title: a.Address, State: "good"}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	status, ready, err := a.get(ctx, "/readyz")
	if err != nil {
		s.State, s.Says = "bad", fmt.Sprintf("No answer: %v. Is the process running, and is this its admin address?", err)
		return s
	}
	s.Says = strings.TrimSpace(ready)
	if status != http.StatusOK {
		s.State = "bad"
	}
	status, text, err := a.get(ctx, "/metrics")
	switch {
	case err != nil:
		s.State, s.Says = "bad", err.Error()
		return s
	case status == http.StatusUnauthorized:
		s.State, s.Says = "bad", wantsToken
		return s
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		s.State, s.Says = "bad", "Its metrics cannot be read; is it an admin address of runlens?"
		return s
	}
	s.Facts = metrics{families}.facts()
	if status, text, err := a.get(ctx, "/status"); err == nil && status == http.StatusOK {
		s.Facts = append(s.Facts, workerFacts(text)...)
	}
	for _, f := range s.Facts {
		if s.State != "bad" && f.State != "good" {
			s.State = f.State
		}
	}
	return s
}

func (a Admin) get(ctx context.Context, path string) (status int, text string, err error) {
	return a.send(ctx, http.MethodGet, path, nil)
}

func (a Admin) send(ctx context.Context, method, path string, body []byte) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+a.Address+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if a.Token != "" {
		request.Header.Set("Authorization", "Bearer "+a.Token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, adminBytes))
	return response.StatusCode, string(content), err
}

// metrics are those of one process, by name.
type metrics struct {
	families map[string]*dto.MetricFamily
}

// each calls f for the values of a metric, with the value of one label; a metric that is not there has none.
func (m metrics) each(name, label string, f func(label string, value float64)) {
	family := m.families[name]
	for _, metric := range family.GetMetric() {
		text := ""
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == label {
				text = pair.GetValue()
			}
		}
		f(text, metric.GetGauge().GetValue()+metric.GetCounter().GetValue()+metric.GetUntyped().GetValue())
	}
}

func (m metrics) facts() (facts []fact) {
	add := func(name, about string, value string, state string) {
		facts = append(facts, fact{name, value, state, about})
	}
	seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	state := func(worry bool, level string) string {
		if worry {
			return level
		}
		return "good"
	}
	m.each("runlens_build_info", "version", func(version string, _ float64) {
		add("Version", "Of this process.", "runlens "+version, "good")
	})
	m.each("runlens_store_info", "version", func(version string, _ float64) {
		add("Engine", "What stores and counts, embedded or a server.", "ClickHouse "+version, "good")
	})
	m.each("runlens_store_uptime_seconds", "", func(_ string, v float64) {
		add("Engine running for", "Since ClickHouse was started: a short time is a restart.", ago(seconds(v)), "good")
	})
	m.each("process_start_time_seconds", "", func(_ string, v float64) {
		add("Running for", "Since the process started.", ago(time.Since(time.Unix(int64(v), 0))), "good")
	})
	m.each("runlens_queries_running", "", func(_ string, v float64) {
		add("Queries running", "Queries being answered now.", fmt.Sprint(v), "good")
	})
	m.each("runlens_rollup_age_seconds", "", func(_ string, v float64) {
		age := seconds(v)
		add("Rollup watermark", "The rollup has everything stored before. Queries add what is newer, which takes longer.",
			ago(age)+" ago", state(age > rollupLate, "look"))
	})
	m.each("runlens_rollup_damages", "", func(_ string, v float64) {
		add("Damaged rollups", "They are repaired by themselves; until then queries read the base tables and stay exact.",
			fmt.Sprint(v), state(v > 0, "bad"))
	})
	m.each("runlens_maintenance_failures_total", "task", func(task string, v float64) {
		if v > 0 {
			add("Failed maintenance: "+task, "Steps that failed since the start, and are tried again. The log has the cause.",
				fmt.Sprint(v), "look")
		}
	})
	m.each("runlens_ingest_lag_seconds", "table", func(table string, v float64) {
		age, about := ago(seconds(v)), "Age of the newest stored row, by its event clock."
		if v < 0 {
			age, about = "in the future", "The event clock of a stored row is ahead, and hides how old the others are."
		}
		add("Newest of "+table, about, age, state(v < 0, "look"))
	})
	m.each("runlens_conflicting_records", "record", func(kind string, v float64) {
		add("Conflicting: "+kind, "Records whose versions disagree about what never changes.", fmt.Sprint(v),
			state(v > 0, "look"))
	})
	return append(facts, m.requests()...)
}

// requests sums up the answers by status, and their time.
func (m metrics) requests() (facts []fact) {
	byStatus := make(map[string]float64)
	m.each("runlens_http_requests_total", "status", func(status string, v float64) { byStatus[status] += v })
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		state := "good"
		if strings.HasPrefix(status, "5") {
			state = "look"
		}
		facts = append(facts, fact{"Answered " + status, thousands(fmt.Sprintf("%.0f", byStatus[status])), state,
			"Requests since the start with this status."})
	}
	for _, metric := range m.families["runlens_http_request_seconds"].GetMetric() {
		h, route := metric.GetHistogram(), ""
		for _, pair := range metric.GetLabel() {
			route = pair.GetValue()
		}
		if h.GetSampleCount() == 0 || !strings.HasSuffix(route, "/query") {
			continue
		}
		facts = append(facts, fact{"Slowest of 100 queries", quantile(h, 0.99), "good",
			"99 of 100 queries since the start were answered within this time."},
			fact{"Half of all queries", quantile(h, 0.5), "good", "The median's bound since the start."})
	}
	return facts
}

// quantile says which bucket a quantile is in, by its upper bound. The last bucket has none.
func quantile(h *dto.Histogram, q float64) string {
	most := ""
	for _, bucket := range h.GetBucket() {
		if math.IsInf(bucket.GetUpperBound(), 1) {
			break
		}
		most = thousands(fmt.Sprintf("%.0f", bucket.GetUpperBound()*1000)) + " ms"
		if float64(bucket.GetCumulativeCount()) >= q*float64(h.GetSampleCount()) {
			return "up to " + most
		}
	}
	return "more than " + most
}

// workerFacts reads the status of a worker; other processes have none.
func workerFacts(text string) (facts []fact) {
	var status struct {
		Kinds map[string]struct {
			CaughtUp bool     `json:"caught_up"`
			Lag      *float64 `json:"lag_seconds"`
			Rejected int64    `json:"rejected"`
		} `json:"kinds"`
	}
	if json.Unmarshal([]byte(text), &status) != nil {
		return nil
	}
	for _, kind := range slices.Sorted(maps.Keys(status.Kinds)) {
		k := status.Kinds[kind]
		f := fact{"Worker: " + kind, "caught up", "good", "How far the copies are behind the source."}
		if k.Lag != nil {
			lag := time.Duration(*k.Lag * float64(time.Second))
			if f.Value = ago(lag) + " behind"; lag > workerLate {
				f.State = "look"
			}
		} else if !k.CaughtUp {
			f.Value = "copying"
		}
		facts = append(facts, f)
		if k.Rejected > 0 {
			facts = append(facts, fact{"Rejected: " + kind, fmt.Sprint(k.Rejected), "look", "Records that broke a rule."})
		}
	}
	return facts
}
