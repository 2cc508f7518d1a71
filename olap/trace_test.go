package olap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/trace"
)

// A question whose first plan assumed something that did not hold has a plan and a statement of each attempt.
// ClickHouse learns which trace a statement belongs to.
func TestTraceOfTwoAttempts(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	refresher := rollup.New(conn, quiet, 0)
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{startedBy(1, "ada@example.com", earlierName)}})
	refreshed(t, refresher)
	olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{startedBy(2, "ada@example.com", laterName)}})
	engine := newEngine(conn)
	engine.Use(inlineDelta)
	asked, err := request(acme, []byte(`{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier"],`+
		january31))
	if err != nil {
		t.Fatal(err)
	}
	ended := tracetest.NewInMemoryExporter()
	ctx, span := trace.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(ended))).Begin(context.Background(), "question")
	if _, err := engine.Run(ctx, asked); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range ended.GetSpans() {
		if s.Parent.SpanID() != span.SpanContext().SpanID() {
			continue
		}
		got += s.Name
		for _, a := range s.Attributes {
			if key := string(a.Key); strings.HasSuffix(key, ".reads") || strings.HasSuffix(key, ".attempt") {
				got += " " + a.Value.String()
			}
		}
		if s.Status.Code == codes.Error {
			got += " failed"
		}
		got += "\n"
	}
	const want = "plan\nstatement rollup_rows 1 failed\nplan\nstatement base 2\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}

	if !store.Embedded() {
		return // over the native protocol the driver tells ClickHouse
	}
	var told string
	if err := conn.QueryRow(ctx, "SELECT getClientHTTPHeader('traceparent') SETTINGS allow_get_client_http_header = 1").
		Scan(&told); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID()); told != want {
		t.Errorf("ClickHouse was told %q, want %q", told, want)
	}
}
