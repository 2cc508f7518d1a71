package compile

import (
	"slices"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// planned says what a statement has to compute, layer by layer: rows (one per record, versions
// collapsed), groups (keys, aggregates), answer (derived metrics, names, order, limit).
type planned struct {
	Input
	source *catalog.Source
	order  []query.OrderTerm

	// rows
	fields   []*catalog.Field // of the model's own table
	collapse bool             // read with FINAL
	needDay  bool

	// groups
	joinRun    []*catalog.Field // fields of the run's current state; empty for no join
	aggregates []*catalog.Metric
	agentNames bool

	// refreshed is the table whose rows are to be added up instead, by which keys, and rollup its projection that has
	// the sums; nil for none.
	rollup     *schema.RollupTable
	rollupKeys []string
	// rollupAfterAsOf says that some of them may have been first stored after the inclusion boundary.
	rollupAfterAsOf bool
	projection      *schema.Projection
}

func plan(in Input) planned {
	p := planned{Input: in, source: &in.Query.Model.Source}
	if !in.Query.Totals() {
		p.order = in.Query.Completed()
	}
	// Superseded versions of mutable rows are always collapsed; immutable rows only where repeats would count, or are none.
	p.collapse = p.source.Mutable || in.Conflicts
	for _, metric := range in.Query.Metrics {
		p.needMetric(metric)
	}
	for _, dimension := range in.Query.Dimensions {
		p.needDimension(dimension)
		for _, companion := range dimension.Companions {
			if companion.Field == "" {
				p.agentNames = true
			} else {
				p.needField(companion.Field)
			}
		}
	}
	for _, filter := range in.Query.Filters {
		p.needDimension(filter.Dimension)
	}
	p.addUp()
	return p
}

func (p *planned) needMetric(metric *catalog.Metric) {
	for _, name := range metric.From {
		p.needMetric(p.Query.Model.Metric(name))
	}
	if metric.Aggregate == "" || slices.Contains(p.aggregates, metric) {
		return
	}
	p.aggregates = append(p.aggregates, metric)
	p.collapse = p.collapse || metric.CountsRows
	for _, name := range metric.Fields {
		p.needField(name)
	}
}

func (p *planned) needDimension(dimension *catalog.Dimension) {
	if dimension.Kind == catalog.Day {
		p.needDay = true
	} else {
		p.needField(dimension.Field)
	}
}

func (p *planned) needField(name string) {
	field := p.source.Field(name)
	into := &p.fields
	if field.FromRun {
		into = &p.joinRun
	}
	if !slices.Contains(*into, field) {
		*into = append(*into, field)
	}
}

// long reports whether the range is so long that it pays to read it in several parts, but not to look for single runs.
func (p *planned) long() bool {
	return p.Query.Range.EndUTC.Sub(p.Query.Range.StartUTC) >= longRange
}
