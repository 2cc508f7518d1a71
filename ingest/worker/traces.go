package worker

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/runlens/runlens/ingest/normalize"
)

// attributes are what a span says of a page that was read.
func (p *page) attributes(kind normalize.Kind) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("runlens.kind", string(kind)),
		attribute.Int("runlens.records", len(p.versions)), attribute.Int("runlens.rejected", p.rejected)}
}
