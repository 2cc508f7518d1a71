// Package logs keeps what strangers send from filling a log.
package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
)

const (
	// fieldBytes is the most of a field in the log, and messageBytes of a message and of what says why something failed,
	// which may have a stack. Both are without the note on what is left out.
	fieldBytes   = 256
	messageBytes = 8 << 10
)

// reasons are the fields that say why something failed.
var reasons = []string{"error", "cause"}

// Bounded is a handler that cuts long texts before next has them, writes durations as people do ("1.5s"), and adds the
// trace that a record belongs to as trace_id. Numbers, times and truth values are short.
func Bounded(next slog.Handler) slog.Handler { return bounded{next} }

type bounded struct{ slog.Handler }

func (b bounded) Handle(ctx context.Context, r slog.Record) error {
	short := slog.NewRecord(r.Time, r.Level, cut(r.Message, messageBytes), r.PC)
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		short.AddAttrs(slog.String("trace_id", span.TraceID().String()))
	}
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(boundedAttr(a))
		return true
	})
	return b.Handler.Handle(ctx, short)
}

func (b bounded) WithAttrs(attributes []slog.Attr) slog.Handler {
	return bounded{b.Handler.WithAttrs(boundedAttrs(attributes))}
}

func (b bounded) WithGroup(name string) slog.Handler { return bounded{b.Handler.WithGroup(name)} }

func boundedAttrs(attributes []slog.Attr) []slog.Attr {
	short := make([]slog.Attr, len(attributes))
	for i, a := range attributes {
		short[i] = boundedAttr(a)
	}
	return short
}

func boundedAttr(a slog.Attr) slog.Attr {
	most := fieldBytes
	if slices.Contains(reasons, a.Key) {
		most = messageBytes
	}
	a.Key = cut(a.Key, fieldBytes)
	switch a.Value = a.Value.Resolve(); a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(cut(a.Value.String(), most))
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.String())
	case slog.KindGroup:
		a.Value = slog.GroupValue(boundedAttrs(a.Value.Group())...)
	case slog.KindAny:
		a.Value = boundedAny(a.Value.Any(), most)
	}
	return a
}

// boundedAny leaves a value that is short in JSON as it is. Of a longer one it keeps the beginning, as a text.
func boundedAny(v any, most int) slog.Value {
	if err, ok := v.(error); ok {
		return slog.StringValue(cut(Text(err), most))
	}
	text, err := json.Marshal(v)
	if err != nil {
		return slog.StringValue(cut(fmt.Sprintf("%+v", v), most))
	}
	if len(text) <= most {
		return slog.AnyValue(v)
	}
	return slog.StringValue(cut(string(text), most))
}

// cut returns at most so many bytes of a text, whole characters of it, and says how many are left out.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return fmt.Sprintf("%s… (%d bytes more)", text[:most], len(text)-most)
}
