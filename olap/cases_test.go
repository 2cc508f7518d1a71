package olap_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
)

// The cases of testdata/queries, whose answers are worked out by hand from the spec.
func TestQueryCases(t *testing.T) {
	files, err := filepath.Glob("../testdata/queries/*.test")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, err := olaptest.ParseScript(string(text))
			if err != nil {
				t.Fatal(err)
			}
			store := olaptest.OpenStore(t)
			engine := olap.NewEngine(store.Conn(), []byte("secret"))
			for _, step := range script.Steps {
				if step.Records != nil {
					olaptest.Load(t, store.Conn(), *step.Records)
					continue
				}
				t.Run(step.Name, func(t *testing.T) { check(t, engine, step) })
			}
		})
	}
}

func check(t *testing.T, engine *olap.Engine, step olaptest.Step) {
	got, err := run(engine, step.Organization, []byte(step.Query))
	if step.FailCode != "" {
		var refused *query.Error
		if !errors.As(err, &refused) || string(refused.Code) != step.FailCode || refused.Param != step.FailParam {
			t.Errorf("line %d: got %v, want %s at %s", step.Line, err, step.FailCode, step.FailParam)
		}
		return
	}
	if err != nil {
		t.Fatalf("line %d: %v", step.Line, err)
	}
	if !reflect.DeepEqual(got.Rows, step.Rows) {
		t.Errorf("line %d:\n got %v\nwant %v", step.Line, got.Rows, step.Rows)
	}
	for _, row := range got.Rows {
		if len(row) != len(got.Columns) {
			t.Errorf("line %d: %d values for %d columns", step.Line, len(row), len(got.Columns))
		}
	}
	if step.Warnings != nil {
		members := []string{}
		for _, w := range got.Warnings {
			if w.Code != "non_additive_metric" || w.Message == "" {
				t.Errorf("line %d: warning %+v", step.Line, w)
			}
			members = append(members, w.Member)
		}
		if !reflect.DeepEqual(members, step.Warnings) {
			t.Errorf("line %d: warnings of %v, want %v", step.Line, members, step.Warnings)
		}
	}
}
