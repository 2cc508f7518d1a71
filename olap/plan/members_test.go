package plan

import (
	"testing"

	"github.com/runlens/runlens/olap/catalog"
)

// Every additive metric is quick for large organizations. One that is not is right all the same, read from base rows.
func TestAdditiveMetricsAreInTheRollup(t *testing.T) {
	for _, model := range catalog.Models {
		for _, m := range model.Metrics {
			if m.Additive && m.RollupSum == "" {
				t.Errorf("%s reads base rows: to make it fast for large organizations, add a sum to schema.RollupTables"+
					" and a column to its table and projections, and name the sum in RollupSum", m.Name)
			}
		}
	}
}
