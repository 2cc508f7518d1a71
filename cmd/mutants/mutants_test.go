package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Every mutant fits the code, so that who changes a line that exactness rests on changes the list as well.
func TestMutantsFitTheCode(t *testing.T) {
	mutants, err := parse(listed)
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 50 {
		t.Errorf("%d mutants, want 50 or more", len(mutants))
	}
	for _, m := range mutants {
		if _, err := m.apply(filepath.Join("..", "..")); err != nil {
			t.Errorf("mutant %s: %v", m, err)
		}
	}
}

func TestListsThatCannotBeRead(t *testing.T) {
	const whole = "@ a.go\n- x\n+\n= it counts\n? ./a ^TestA$\n"
	if mutants, err := parse("A title\n\n" + whole + whole); err != nil || len(mutants) != 2 {
		t.Errorf("%v, %v, want two mutants", mutants, err)
	}
	for _, line := range strings.SplitAfter(whole, "\n")[:5] {
		if mutants, err := parse(strings.Replace(whole, line, "", 1)); err == nil {
			t.Errorf("without %q: %v", line, mutants)
		}
		if line[0] != '+' {
			if mutants, err := parse(strings.Replace(whole, line, line[:1]+"\n", 1)); err == nil {
				t.Errorf("with an empty %q: %v", line[:1], mutants)
			}
		}
	}
}

func TestOutcomes(t *testing.T) {
	const ran = `{"Action":"run","Test":"TestA"}` + "\n"
	for events, want := range map[string]outcome{
		ran + `{"Action":"pass","Test":"TestA"}`:               {built: true, ran: true},
		ran + `{"Action":"fail","Test":"TestA/b"}`:             {built: true, ran: true, failed: "TestA/b"},
		`{"Action":"build-fail"}` + "\n" + `{"Action":"fail"}`: {},
		`{"Action":"fail","FailedBuild":"olap"}`:               {},
		`{"Action":"pass"}`:                                    {built: true},
		ran + `{"Action":"output","Output":"panic: test timed out after 5m\n"}`: {built: true, ran: true,
			failed: "panic: test timed out after 5m"},
	} {
		got := read([]byte(events))
		if got.output = ""; got != want {
			t.Errorf("%s: %+v, want %+v", events, got, want)
		}
	}
}
