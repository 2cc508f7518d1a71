// Package trace begins OpenTelemetry spans. Attributes are names, ids and numbers of ours: never SQL, a person, or what
// a caller or ClickHouse wrote. Where nothing is traced, it costs a look into the context.
package trace

import (
	"context"
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/runlens/runlens/olap/cost"
)

// Scope names what makes the spans.
const Scope = "github.com/runlens/runlens"

// A Tracer begins traces. The zero one begins none. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer whose spans a provider takes.
func New(provider trace.TracerProvider) Tracer { return Tracer{provider.Tracer(Scope)} }

// On reports whether the Tracer begins any traces.
func (t Tracer) On() bool { return t.tracer != nil }

// Begin begins a span with whatever is in ctx around it, such as the caller's. Its owner ends it.
func (t Tracer) Begin(
	ctx context.Context, name string, options ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return carried(t.tracer.Start(ctx, name, options...))
}

// Start begins a span within the one of ctx, if that is recorded. Statements with the new context carry it on into
// ClickHouse. Its owner ends it, as End does.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	around := trace.SpanFromContext(ctx)
	if !around.IsRecording() {
		return ctx, around
	}
	return carried(around.TracerProvider().Tracer(Scope).Start(ctx, name, options...))
}

func carried(ctx context.Context, span trace.Span) (context.Context, trace.Span) {
	return clickhouse.Context(ctx, clickhouse.WithSpan(span.SpanContext())), span
}

// End ends a span. That something failed is said without why: the log has that.
func End(span trace.Span, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// Statement begins the span of a statement. The returned function ends it, with what ClickHouse says that it read.
func Statement(ctx context.Context, name string) (context.Context, func(error)) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	ctx, meter := cost.Measure(ctx)
	span.SetAttributes(attribute.String("db.system.name", "clickhouse"))
	return ctx, func(err error) {
		read := meter.Cost()
		span.SetAttributes(attribute.Int64("runlens.read_rows", int64(read.Rows)),
			attribute.Int64("runlens.read_bytes", int64(read.Bytes)))
		End(span, err)
	}
}

// Describe gives the span of ctx attributes, which are made only if it is recorded.
func Describe(ctx context.Context, attributes func() []attribute.KeyValue) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attributes()...)
	}
}

// Propagated is how a trace goes on from one process to the next: by the W3C headers traceparent and tracestate.
var Propagated propagation.TextMapPropagator = propagation.TraceContext{}
