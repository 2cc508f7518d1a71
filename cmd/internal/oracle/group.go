package oracle

// A group is what is counted of rows with the same dimensions.
type group struct {
	rows       int
	completed  int
	failed     int
	cancelled  int
	interacted int
	name       int32              // the greatest
	initiators map[int32]struct{} // nil where no metric needs them
	pairs      map[pair]pairState // likewise
	people     map[int32]struct{} // where the key has a least number of them; an automated initiator is none
}

// A pair is a person and a run.
type pair struct{ identifier, run int32 }

type pairState struct {
	initiated, interacted bool
	status                string
}

func newGroup(q Query) *group {
	g := &group{name: null, people: map[int32]struct{}{}}
	for _, metric := range q.Metrics {
		switch {
		case metric == "unique_initiator_count":
			g.initiators = map[int32]struct{}{}
		case q.Model != "agent_runs" && metric != "interaction_count":
			g.pairs = map[pair]pairState{}
		}
	}
	return g
}

func (g *group) add(texts *texts, r *row, initiated, interacted int32) {
	g.rows++
	if r.name != null && (g.name == null || texts.all[r.name] > texts.all[g.name]) {
		g.name = r.name
	}
	switch r.status {
	case "COMPLETED":
		g.completed++
	case "FAILED":
		g.failed++
	case "CANCELLED":
		g.cancelled++
	}
	if r.activity == interacted {
		g.interacted++
	}
	if g.initiators != nil && r.identifier != null {
		g.initiators[r.identifier] = struct{}{}
	}
	if g.pairs != nil {
		p := g.pairs[pair{r.identifier, r.run}]
		p.status = r.status
		p.initiated = p.initiated || r.activity == initiated
		p.interacted = p.interacted || r.activity == interacted
		g.pairs[pair{r.identifier, r.run}] = p
	}
}

// ended are the statuses that are not active (spec section 3).
var ended = map[string]bool{"COMPLETED": true, "FAILED": true, "CANCELLED": true}

// measure is spec 2.7 and 2.8.
func (g *group) measure(metric string) any {
	pairs := func(counts func(pairState) bool) any {
		n := 0
		for _, p := range g.pairs {
			if counts(p) {
				n++
			}
		}
		return float64(n)
	}
	switch metric {
	case "run_count":
		return float64(g.rows)
	case "completed_run_count":
		return float64(g.completed)
	case "failed_run_count":
		return float64(g.failed)
	case "cancelled_run_count":
		return float64(g.cancelled)
	case "active_run_count":
		return float64(g.rows - g.completed - g.failed - g.cancelled)
	case "run_success_rate":
		if g.completed+g.failed == 0 {
			return nil
		}
		return float64(g.completed) / float64(g.completed+g.failed)
	case "unique_initiator_count":
		return float64(len(g.initiators))
	case "attributed_run_count":
		return float64(len(g.pairs))
	case "initiated_run_count":
		return pairs(func(p pairState) bool { return p.initiated })
	case "associated_run_count":
		return pairs(func(p pairState) bool { return !p.initiated })
	case "interacted_run_count":
		return pairs(func(p pairState) bool { return p.interacted })
	case "interaction_count":
		return float64(g.interacted)
	case "completed_attributed_run_count":
		return pairs(func(p pairState) bool { return p.status == "COMPLETED" })
	case "failed_attributed_run_count":
		return pairs(func(p pairState) bool { return p.status == "FAILED" })
	case "cancelled_attributed_run_count":
		return pairs(func(p pairState) bool { return p.status == "CANCELLED" })
	case "active_attributed_run_count":
		return pairs(func(p pairState) bool { return p.status != "" && !ended[p.status] })
	default:
		panic("oracle: say in group.go what the metric " + metric + " is")
	}
}
