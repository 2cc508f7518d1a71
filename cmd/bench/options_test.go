package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/runlens/runlens/olap/plan"
)

// Every option of an engine has its trick, so that each run says what it saves, and every trick has its question.
func TestEveryOptionIsMeasured(t *testing.T) {
	for i := range reflect.TypeFor[plan.Options]().NumField() {
		switches := func(options plan.Options) bool { return !reflect.ValueOf(options).Field(i).IsZero() }
		if !slices.ContainsFunc(tricks, func(of trick) bool {
			return switches(of.with.Options) != switches(of.without.Options)
		}) {
			t.Errorf("no trick switches %s", reflect.TypeFor[plan.Options]().Field(i).Name)
		}
	}
	all := questions("")
	all = append(all, monthly(all)...)
	for _, of := range tricks {
		if !slices.ContainsFunc(all, func(q question) bool { return q.title() == of.question }) {
			t.Errorf("%s: no question %q", of.name, of.question)
		}
	}
}
