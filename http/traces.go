package httpapi

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/runlens/runlens/olap/trace"
)

// beginTrace begins the span of a request, within the caller's if the request names one.
func (s *Server) beginTrace(c *fiber.Ctx) (context.Context, oteltrace.Span) {
	ctx := context.Background()
	if !s.Tracer.On() {
		return ctx, oteltrace.SpanFromContext(ctx)
	}
	caller := propagation.MapCarrier{}
	for _, name := range trace.Propagated.Fields() {
		// Of a field that is sent twice nobody knows which one counts.
		if fields := c.Request().Header.PeekAll(name); len(fields) == 1 {
			caller[name] = string(fields[0])
		}
	}
	ctx = trace.Propagated.Extract(ctx, caller)
	return s.Tracer.Begin(ctx, "request", oteltrace.WithSpanKind(oteltrace.SpanKindServer))
}

// endTrace ends the span of a request with what the log says of it.
func (x *exchange) endTrace(method, route string, status int) {
	if !x.span.IsRecording() {
		return
	}
	x.span.SetName(method + " " + route)
	x.span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status), attribute.String("runlens.request_id", x.requestID))
	if x.principal.KeyID != "" {
		x.span.SetAttributes(attribute.String("runlens.organization_id", string(x.principal.Organization())),
			attribute.String("runlens.key_id", x.principal.KeyID))
	}
	if x.queryID != uuid.Nil {
		x.span.SetAttributes(attribute.String("runlens.query_id", x.queryID.String()))
	}
	if x.refusal != nil {
		x.span.SetAttributes(attribute.String("error.type", x.refusal.code))
	}
	if status >= 500 {
		x.span.SetStatus(codes.Error, "")
	}
	x.span.End()
}
