package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/runlens/runlens/olap/trace"
)

const (
	// flushPatience is how long the end of a process waits until the last spans are sent.
	flushPatience = 2 * time.Second
	// lostEvery is the least time between two lines about spans that nobody takes.
	lostEvery = time.Minute
)

// openTracing begins to send spans where the standard variables of OpenTelemetry say so, and returns what makes them
// and what sends the last ones. Nothing is made or started otherwise. service is the name unless OTEL_SERVICE_NAME has
// another one.
func openTracing(ctx context.Context, service string, logger *slog.Logger) (trace.Tracer, func(), error) {
	off := func() {}
	if !tracingWanted() {
		return trace.Tracer{}, off, nil
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"),
		"http/protobuf")
	if protocol != "http/protobuf" {
		return trace.Tracer{}, off, usageError{
			fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; spans are sent by http/protobuf, to port 4318 of most receivers",
				protocol),
		}
	}
	var said atomic.Int64
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		now, before := time.Now().UnixNano(), said.Load()
		if now-before >= int64(lostEvery) && said.CompareAndSwap(before, now) {
			logger.Warn("spans were lost", "error", err)
		}
	}))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return trace.Tracer{}, off, usageError{fmt.Errorf("the OTEL_EXPORTER_OTLP variables: %w", err)}
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithAttributes(
		attribute.String("service.name", cmp.Or(os.Getenv("OTEL_SERVICE_NAME"), service)),
		attribute.String("service.version", version)))
	if err != nil {
		return trace.Tracer{}, off, usageError{fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)}
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return trace.New(provider), func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Warn("spans were lost", "error", err)
		}
	}, nil
}

// tracingWanted reports whether the environment names a receiver of spans.
func tracingWanted() bool {
	return !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") && os.Getenv("OTEL_TRACES_EXPORTER") != "none" &&
		cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) != ""
}
