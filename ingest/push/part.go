package push

import (
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/write"
)

// A part is a part of the records of a body.
type part struct {
	write.Batch
	lines []int // of Attributions
}

// partKeys are the parts that an insert makes in the tables of ClickHouse that are divided by months.
type partKeys map[partKey]bool

type partKey struct {
	kind  normalize.Kind
	month int
}

// has reports whether the insert may have a record of an event clock, with the parts that it has.
func (k partKeys) has(kind normalize.Kind, clock normalize.Instant) bool {
	at := time.UnixMilli(clock).UTC()
	key := partKey{kind, at.Year()*12 + int(at.Month())}
	if !k[key] && len(k) < insertParts {
		k[key] = true
	}
	return k[key]
}

// take takes out of p what an insert may have that makes some parts already, at most insertParts.
func (p *part) take(keys partKeys) (taken part) {
	ofRun := func(r *normalize.Run) bool { return keys.has(normalize.KindRun, r.CreatedAt) }
	ofAttribution := func(a *normalize.Attribution) bool { return keys.has(normalize.KindAttribution, a.OccurredAt) }
	runs, attributions := count(p.Runs, ofRun), count(p.Attributions, ofAttribution)
	if runs == len(p.Runs) && attributions == len(p.Attributions) { // as nearly always
		taken, *p = *p, part{}
		return taken
	}
	taken.Agents, p.Agents = p.Agents, nil
	if runs+attributions == 0 {
		return taken
	}
	var left part
	for i := range p.Runs {
		to := &left
		if ofRun(&p.Runs[i]) {
			to = &taken
		}
		to.Runs = append(to.Runs, p.Runs[i])
	}
	for i := range p.Attributions {
		to := &left
		if ofAttribution(&p.Attributions[i]) {
			to = &taken
		}
		to.Attributions, to.lines = append(to.Attributions, p.Attributions[i]), append(to.lines, p.lines[i])
	}
	*p = left
	return taken
}

func count[R any](records []R, which func(*R) bool) (n int) {
	for i := range records {
		if which(&records[i]) {
			n++
		}
	}
	return n
}
