// Package usage keeps which questions were asked over the API, for operators: by whom, of which shape, what they took,
// and which were refused. It keeps no value of a filter and nothing else that a caller wrote but names of the catalog,
// so that it names no person, and a purge of one has nothing to remove.
package usage

import (
	"time"

	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// An Entry is a question with a valid key that was answered or refused.
type Entry struct {
	At             time.Time // when it came, by this server's clock
	OrganizationID schema.OrganizationID
	KeyID          string
	Code           string // of the refusal; empty for an answer
	LimitHit       string // of a refusal by a limit: rate, concurrency, engine or query_too_expensive
	Shape                 // empty for a refusal before the question was understood

	ReturnedRows int
	Cost         cost.Cost // of its own statements, not of those that it shared with an equal question
	Took         time.Duration
}

// A Shape is what a question asks for, without values. Equal questions of different days have equal shapes if the
// ranges are equally long.
type Shape struct {
	Model      string
	Metrics    []string
	Dimensions []string
	Filters    []string // a member and its operator, such as "agent_id in"
	Days       int      // of the range
	Timezone   string
	Limit      int
}

// ShapeOf returns the shape of a question.
func ShapeOf(q query.Query) Shape {
	s := Shape{
		Model: q.Model.Name, Days: int(q.Range.End-q.Range.Start) + 1, Timezone: q.Range.Timezone, Limit: q.Limit,
	}
	for _, metric := range q.Metrics {
		s.Metrics = append(s.Metrics, metric.Name)
	}
	for _, dimension := range q.Dimensions {
		s.Dimensions = append(s.Dimensions, dimension.Name)
	}
	for _, filter := range q.Filters {
		s.Filters = append(s.Filters, filter.Dimension.Name+" "+filter.Op)
	}
	return s
}
