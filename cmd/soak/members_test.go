package main

import (
	"slices"
	"testing"

	"github.com/runlens/runlens/olap/catalog"
)

// The oracle's questions have every metric.
func TestQuestionsHaveEveryMetric(t *testing.T) {
	asked := slices.Concat(runMetrics, pairMetrics, stateMetrics, []string{"interaction_count"})
	for _, model := range catalog.Models {
		for _, m := range model.Metrics {
			if !slices.Contains(asked, m.Name) {
				t.Errorf("no question has %s: add it to the lists in oraclequestions.go", m.Name)
			}
		}
	}
}
