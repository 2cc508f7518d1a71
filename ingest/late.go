package ingest

import (
	"context"
	"slices"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/write"
)

// A person may be purged after a record was read. It is rejected then as if it had been known before.

// An origin is where an attribution record was read, and what its batch had before it.
type origin struct {
	source int32 // position in Options.Sources
	line   int

	read, rejects, agents, runs int32
}

// originOf is that of a record that is about to be added.
func (b *batch) originOf(source int, record *source.Record) origin {
	return origin{
		source: int32(source), line: record.Line,
		read: int32(b.read), rejects: int32(len(b.rejects)), agents: int32(len(b.Agents)), runs: int32(len(b.Runs)),
	}
}

// store stores a batch, unless nothing is to be stored, and rejects what stays out.
func (o Options) store(ctx context.Context, b *batch) error {
	if o.Writer == nil {
		return nil
	}
	if o.StopOnError {
		if err := o.Writer.ReadPurged(ctx); err != nil {
			return err
		}
		for i := range b.Attributions {
			if fault := o.Writer.Excludes(&b.Attributions[i]); fault != nil {
				o.cut(b, i, fault)
				break
			}
		}
	}
	if err := o.Writer.Write(ctx, &b.Batch); err != nil {
		return err
	}
	slices.SortFunc(b.Excluded, func(x, y write.Excluded) int { return x.Index - y.Index })
	var all []Reject
	for i := range b.Excluded {
		e := &b.Excluded[i]
		fault := o.Writer.Excludes(&e.Attribution)
		if fault == nil { // lifted since
			fault = &normalize.Error{Field: "user_identifier", Reason: "the person was purged meanwhile"}
		}
		before := &b.origins[e.Index]
		all = append(all, b.rejects[len(all)-i:before.rejects]...)
		all = append(all, o.lateReject(before, &e.Attribution, fault))
		if o.StopOnError {
			b.rejects, b.err = all, stoppedAt(all[len(all)-1])
			return nil
		}
	}
	b.rejects = append(all, b.rejects[len(all)-len(b.Excluded):]...)
	return nil
}

// cut ends a batch at an attribution record that is rejected.
func (o Options) cut(b *batch, at int, fault error) {
	before := b.origins[at]
	reject := o.lateReject(&before, &b.Attributions[at], fault)
	b.Agents, b.Runs, b.Attributions = b.Agents[:before.agents], b.Runs[:before.runs], b.Attributions[:at]
	b.read, b.rejects = int64(before.read)+1, append(b.rejects[:before.rejects], reject)
	b.err = stoppedAt(reject)
}

// lateReject is the reject of a record of which only the normalized fields are left.
func (o Options) lateReject(at *origin, a *normalize.Attribution, fault error) Reject {
	occurred := time.UnixMilli(a.OccurredAt).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z07:00")
	record := source.Record{Line: at.line, Raw: normalize.Raw{Kind: normalize.KindAttribution}}
	for i, value := range [][]byte{[]byte(a.OrganizationID), []byte(a.AttributionID.String()), []byte(a.RunID.String()),
		[]byte(a.AgentID.String()), []byte(a.UserIdentifier), nil, []byte(a.ActivityType), []byte(a.RunInitiationType),
		[]byte(a.Source), occurred} {
		record.Raw.Values[i] = value
	}
	if a.UserName != nil {
		record.Raw.Values[5] = []byte(*a.UserName)
	}
	return NewReject(o.Sources[at.source].Name, &record, fault)
}
