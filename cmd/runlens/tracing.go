package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
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
	receiver := spanReceiver()
	if receiver == "" {
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
	if u, err := url.Parse(receiver); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// Not err, which repeats what may be a password.
		return trace.Tracer{}, off, usageError{
			errors.New("OTEL_EXPORTER_OTLP_ENDPOINT must look like http://collector.internal:4318"),
		}
	}
	told := &spanLog{logger: logger}
	otel.SetLogger(logr.New(told))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told.Error(err, "sampler") }))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return trace.Tracer{}, off, usageError{fmt.Errorf("the OTEL_EXPORTER_OTLP variables: %w", err)}
	}
	// What the environment says of the process counts, and else what is known here.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", service), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return trace.Tracer{}, off, usageError{fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)}
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(told.lost))
	return trace.New(provider), func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Warn("spans were lost", "error", err)
		}
	}, nil
}

// A spanLog logs what OpenTelemetry's packages say.
type spanLog struct {
	logger  *slog.Logger
	said    atomic.Int64  // when a line was written about lost spans, in nanoseconds
	dropped atomic.Uint32 // spans for which no place was left
}

func (l *spanLog) lost(err error) {
	now, before := time.Now().UnixNano(), l.said.Load()
	if now-before >= int64(lostEvery) && l.said.CompareAndSwap(before, now) {
		l.logger.Warn("spans were lost", "error", err)
	}
}

// Error is called for variables that can't be used. It leaves out their values, which may be tokens, and addresses
// with passwords.
func (l *spanLog) Error(err error, doing string, _ ...any) {
	_, address := errors.AsType[*url.Error](err)
	_, escape := errors.AsType[url.EscapeError](err)
	if address || escape { // they quote a part of it
		err = errors.New("no URL")
	}
	l.logger.Warn("an OTEL variable is not used", "error", doing+": "+err.Error())
}

// Info is called for every batch that is sent, with how many spans were dropped until then.
func (l *spanLog) Info(_ int, _ string, values ...any) {
	for i := 1; i < len(values); i += 2 {
		dropped, ok := values[i].(uint32)
		if ok && values[i-1] == "total_dropped" && l.dropped.Swap(dropped) < dropped {
			l.lost(errors.New("they are taken too slowly"))
		}
	}
}

func (*spanLog) Init(logr.RuntimeInfo)            {}
func (*spanLog) Enabled(int) bool                 { return true }
func (l *spanLog) WithValues(...any) logr.LogSink { return l }
func (l *spanLog) WithName(string) logr.LogSink   { return l }

// spanReceiver returns the address that the environment names for spans, or none if it wants none sent.
func spanReceiver() string {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	return strings.TrimSpace(cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
		os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")))
}
