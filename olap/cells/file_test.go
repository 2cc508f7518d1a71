package cells_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/cells"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	for text, wrong := range map[string]string{
		"": "names 0 cells", "cells: [": "yaml", "cell: []": "cell not found",
		"cells: [{name: A, url: x}]":                              "must be 1 to 32",
		"cells: [{name: a}]":                                      "either a url",
		"cells: [{name: a, url: x, data_dir: y}]":                 "either a url",
		"cells: [{name: a, data_dir: y, password_file: z}]":       "password_file is for a url",
		"cells: [{name: a, url: x, weight: -1}]":                  "weight",
		"cells: [{name: a, url: x}, {name: a, url: y}]":           "the name a",
		"cells: [{name: a, data_dir: x}, {name: b, data_dir: x}]": "the store",
	} {
		path := filepath.Join(dir, "wrong.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cells.ReadFile(path); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", text, err)
		}
	}
	path := filepath.Join(dir, "cells.yaml")
	text := "cells:\n- {name: a, url: 'clickhouse://host/x', password_file: secret, weight: 3}\n" +
		"- {name: b, data_dir: /b}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := cells.ReadFile(path)
	want := []cells.Cell{
		{Name: "a", URL: "clickhouse://host/x", PasswordFile: filepath.Join(dir, "secret"), Weight: 3},
		{Name: "b", DataDir: "/b", Weight: 1},
	}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, %v", got, err)
	}
}
