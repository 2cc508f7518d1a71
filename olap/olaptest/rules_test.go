package olaptest_test

import (
	"reflect"
	"testing"

	"github.com/runlens/runlens/olap/conform"
	"github.com/runlens/runlens/olap/olaptest"
)

// What has no case and no test is found, and what is not in the inventory.
func TestUnproved(t *testing.T) {
	rules, err := olaptest.ParseRules(
		"# rules\nspec 1: one\nspec 2: two\nspec 3: three -> a_test.go TestA, b_test.go TestB\n")
	if err != nil || len(rules) != 3 || len(rules[2].Tests) != 2 {
		t.Fatal(rules, err)
	}
	wrong := olaptest.Unproved(rules, []conform.Step{{Name: "x", Rules: []string{"spec 1", "spec 4"}}})
	want := []string{`the inventory lacks "spec 4", which "x" proves`, "spec 2 has no case"}
	if !reflect.DeepEqual(wrong, want) {
		t.Errorf("got %q, want %q", wrong, want)
	}
	if _, err := olaptest.ParseRules("two words\n"); err == nil {
		t.Error("a line that names no rule is accepted")
	}
}
