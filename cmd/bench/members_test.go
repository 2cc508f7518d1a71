package main

import (
	"testing"

	"github.com/runlens/runlens/olap/catalog"
)

// Every metric can be measured against naive SQL.
func TestEveryMetricHasNaiveSQL(t *testing.T) {
	for _, model := range catalog.Models {
		for _, m := range model.Metrics {
			if m.Derived == "" && naiveMetrics[m.Name] == "" {
				t.Errorf("%s has no naive SQL: add it to naiveMetrics in naive.go, and to a question in questions.go", m.Name)
			}
		}
	}
}
