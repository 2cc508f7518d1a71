package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/runlens/runlens/cmd/internal/logs"
)

// A receiver takes spans as a collector does.
type receiver struct {
	mu    sync.Mutex
	spans []*spans.Span
	names map[string]bool // of services
}

// receiving starts a receiver, to which every command sends spans from now on until the test ends.
func receiving(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{names: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var export collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &export)
		}
		if err != nil || request.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", request.URL.Path, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, from := range export.ResourceSpans {
			for _, about := range from.Resource.Attributes {
				if about.Key == "service.name" {
					r.names[about.Value.GetStringValue()] = true
				}
			}
			for _, scope := range from.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return r
}

// tree is what lies within a span, given by its id, in the order of beginning, with indentation, but for what the
// server's background may have read instead; of each its name and those of its attributes that are wanted.
func (r *receiver) tree(within []byte, wanted ...string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.spans, func(a, b *spans.Span) int {
		return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano)
	})
	return r.within(within, "", wanted)
}

func (r *receiver) within(id []byte, indent string, wanted []string) (text string) {
	for _, span := range r.spans {
		if !bytes.Equal(span.ParentSpanId, id) || span.Name == "snapshot" || span.Name == "inserts in flight" {
			continue
		}
		text += indent + span.Name
		for _, key := range wanted {
			for _, a := range span.Attributes {
				if a.Key == key {
					text += " " + cmp.Or(a.Value.GetStringValue(), fmt.Sprint(a.Value.GetIntValue()))
				}
			}
		}
		text += "\n" + r.within(span.SpanId, indent+"  ", wanted)
	}
	return text
}

// A caller's trace goes on: of a question whose second page is asked for, too, and of one that is refused. What
// strangers send beyond the log's limit is no trace. Log lines have the trace, and no span has what was asked.
func TestTraces(t *testing.T) {
	received := receiving(t)
	flags := append(store(t), "--maintenance-share", "0")
	ingestTwoDays(t, flags[:4])
	if got := received.tree(nil, "runlens.records"); got != "ingest batch 2\n  insert into runs\n" {
		t.Errorf("ingest:\n%s", got)
	}
	_, key := createKey(t, flags[:4])
	var log bytes.Buffer
	logger := slog.New(logs.Bounded(slog.NewJSONHandler(&log, nil)))
	a, err := startApp(context.Background(), serveWith(t, flags...), logger)
	must(t, err)
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	ask := func(key, more string) (cursor string) {
		request, err := http.NewRequest(http.MethodPost, "http://"+a.Address()+"/api/v1/analytics/query",
			strings.NewReader(`{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"limit":1,"order":[`+
				`{"member":"day","direction":"asc"}],"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}`+
				more+`}`))
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("traceparent", "00-"+trace+"-"+caller+"-01")
		_, text := send(t, request)
		var answer struct{ Cursor string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err, text)
		}
		return answer.Cursor
	}
	ask(key, `,"cursor":"`+ask(key, "")+`"`)
	ask(key, `,"filters":[{"member":"user_identifier","op":"eq","value":"ada@x.example"}]`)
	for range 100 {
		ask("nobody", "")
	}
	a.Close(context.Background())

	id, err := hex.DecodeString(caller)
	must(t, err)
	const strangers = "POST /api/v1/analytics/query 401 unauthorized\n"
	got := received.tree(id, "http.response.status_code", "error.type", "runlens.strategy.reads", "runlens.strategy.page",
		"runlens.strategy.attempt", "runlens.read_rows")
	questions, _, _ := strings.Cut(got, strangers)
	if want := `POST /api/v1/analytics/query 200
  authentication
  plan
  statement base first 1 2
POST /api/v1/analytics/query 200
  authentication
  plan
  statement base next 1 2
POST /api/v1/analytics/query 200
  authentication
  plan
  statement base first 1 2
`; questions != want {
		t.Errorf("questions:\n%swant\n%s", questions, want)
	}
	logged := strings.Count(log.String(), `"code":"unauthorized"`)
	if n := strings.Count(got, strangers); n == 0 || n == 100 || n > logged {
		t.Errorf("%d traces of 100 strangers, of whom %d are in the log", n, logged)
	}
	if strings.Count(log.String(), `"trace_id":"`+trace+`"`) < 2 {
		t.Errorf("the log does not name the trace:\n%s", log.String())
	}
	for _, span := range received.spans {
		if text := span.String(); strings.Contains(text, "ada@") || strings.Contains(text, "SELECT") {
			t.Errorf("a span says too much: %s", text)
		}
	}
	if !received.names["runlens-serve"] || !received.names["runlens-ingest"] {
		t.Errorf("services %v", received.names)
	}
}

// The environment names the process by either variable, and variables that can't be used are said without their values.
func TestVariablesOfTraces(t *testing.T) {
	const one, logged = "OTEL_EXPORTER_OTLP_HEADERS", "an OTEL variable is not used"
	for name, test := range map[string]struct{ variable, value, service, log string }{
		"no name":             {"OTEL_RESOURCE_ATTRIBUTES", "zone=a", "runlens-serve", ""},
		"a name":              {"OTEL_SERVICE_NAME", "mine", "mine", ""},
		"a name of resources": {"OTEL_RESOURCE_ATTRIBUTES", "service.name=mine", "mine", ""},
		"a token and no name": {one, "Bearer secret", "runlens-serve", logged},
		"an escape":           {one, "Authorization=Bearer%secret", "runlens-serve", logged},
		"another address":     {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://reader:sec/ret@host", "runlens-serve", logged},
		"no sampler":          {"OTEL_TRACES_SAMPLER", "never", "runlens-serve", logged},
	} {
		t.Run(name, func(t *testing.T) {
			received := receiving(t)
			t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+"/v1/traces")
			t.Setenv(test.variable, test.value)
			var log bytes.Buffer
			tracer, end, err := openTracing(t.Context(), "runlens-serve", slog.New(slog.NewTextHandler(&log, nil)))
			must(t, err)
			_, span := tracer.Begin(t.Context(), "a span")
			span.End()
			end()
			if !received.names[test.service] || len(received.names) != 1 {
				t.Errorf("services %v, want %s", received.names, test.service)
			}
			if !strings.Contains(log.String(), test.log) || (log.Len() > 0) != (test.log != "") ||
				strings.Contains(log.String(), "sec") {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}

// Spans for which no place is left while a receiver is slow are said to be lost.
func TestSlowReceiver(t *testing.T) {
	wait := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-wait }))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
	var log bytes.Buffer
	tracer, end, err := openTracing(t.Context(), "runlens-serve", slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	for range 100 {
		_, span := tracer.Begin(t.Context(), "a span")
		span.End()
	}
	close(wait)
	end()
	if n := strings.Count(log.String(), "spans were lost"); n != 1 {
		t.Errorf("%d lines in %q", n, log.String())
	}
}

// Nothing is made where nobody takes spans, and a protocol or an address that can't be used is a clear line.
func TestTracingIsOff(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	for name, set := range map[string][2]string{
		"no receiver":  {"OTEL_SERVICE_NAME", "x"},
		"disabled":     {"OTEL_SDK_DISABLED", "true"},
		"no exporter":  {"OTEL_TRACES_EXPORTER", "none"},
		"no such wire": {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
		"no scheme":    {"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "no receiver" {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			}
			t.Setenv(set[0], set[1])
			tracer, end, err := openTracing(t.Context(), "runlens-serve", logger)
			end()
			if tracer.On() || (err != nil) != strings.HasPrefix(name, "no s") {
				t.Errorf("%v, %v", tracer.On(), err)
			}
			var running bytes.Buffer
			pprof.Lookup("goroutine").WriteTo(&running, 2)
			if strings.Contains(running.String(), "opentelemetry.io/otel/sdk") {
				t.Errorf("goroutines of the exporter run:\n%s", running.String())
			}
		})
	}
}
