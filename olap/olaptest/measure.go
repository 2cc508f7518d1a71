package olaptest

import "slices"

var activeStatuses = []string{"PENDING", "RUNNING", "WAITING_FOR_SLOT", "CANCELLING", "AWAITING_REPLY", "SLEEPING",
	"PAUSING", "PAUSED"}

// measure is spec 2.7 and 2.8, a metric at a time.
func measure(metric string, group []row) any {
	count := func(keep func(row) bool) float64 {
		n := 0
		for _, r := range group {
			if keep(r) {
				n++
			}
		}
		return float64(n)
	}
	pairs := func(keep func(row) bool) float64 {
		distinct := map[string]bool{}
		for _, r := range group {
			if keep(r) {
				distinct[r.pair] = true
			}
		}
		return float64(len(distinct))
	}
	all := func(row) bool { return true }
	status := func(statuses ...string) func(row) bool {
		return func(r row) bool { return slices.Contains(statuses, r.status) }
	}
	activity := func(a string) func(row) bool { return func(r row) bool { return r.activity == a } }

	switch metric {
	case "run_count":
		return count(all)
	case "completed_run_count":
		return count(status("COMPLETED"))
	case "failed_run_count":
		return count(status("FAILED"))
	case "cancelled_run_count":
		return count(status("CANCELLED"))
	case "active_run_count":
		return count(status(activeStatuses...))
	case "run_success_rate":
		completed, failed := count(status("COMPLETED")), count(status("FAILED"))
		if completed+failed == 0 {
			return nil
		}
		return completed / (completed + failed)
	case "unique_initiator_count":
		distinct := map[string]bool{}
		for _, r := range group {
			if identifier := r.dimensions["user_identifier"]; identifier != nil {
				distinct[*identifier] = true
			}
		}
		return float64(len(distinct))
	case "attributed_run_count":
		return pairs(all)
	case "initiated_run_count":
		return pairs(activity("initiated"))
	case "associated_run_count":
		return pairs(all) - pairs(activity("initiated"))
	case "interacted_run_count":
		return pairs(activity("interacted"))
	case "interaction_count":
		return count(activity("interacted"))
	case "completed_attributed_run_count":
		return pairs(status("COMPLETED"))
	case "failed_attributed_run_count":
		return pairs(status("FAILED"))
	case "cancelled_attributed_run_count":
		return pairs(status("CANCELLED"))
	case "active_attributed_run_count":
		return pairs(status(activeStatuses...))
	default:
		panic("olaptest: say in measure.go what the metric " + metric + " is")
	}
}
