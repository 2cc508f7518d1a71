package clients_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// runPython asks with the Python client, built into a wheel, in a virtual environment that has nothing else. Its own
// tests and the example of its README run beside pandas and polars, where these are installed.
func (all table) runPython(t *testing.T, s *service, urls []string) (outcomes []outcome) {
	place := environment(t, wheel(t))
	clean := filepath.Join(place, "bin", "python")
	sites, _ := filepath.Glob(filepath.Join(place, "lib", "*", "site-packages"))
	full := []string{"PYTHONPATH=" + sites[0], python()}
	tests := folder + "python/tests/"
	t.Log(execute(t, clean, tests+"test_client.py", "-v"))
	t.Log(execute(t, "env", append(full, tests+"test_client.py", "-v", "Frames")...))
	example := filepath.Join(t.TempDir(), "example.py")
	code := block(t, "python/README.md", "python") + "print(len(frame), frame['run_count'].sum())"
	if err := os.WriteFile(example, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if exec.Command(python(), "-c", "import pandas").Run() == nil {
		if out := execute(t, "env", append(full, example)...); out != "30 0\n" {
			t.Errorf("the example of the README prints %s", out)
		}
	}
	return asked(t, all, s, urls, clean, tests+"table.py")
}

// asked has a program ask, which reads the table, the addresses and the key, and writes outcomes.
func asked(t *testing.T, all table, s *service, urls []string, program ...string) (outcomes []outcome) {
	t.Helper()
	input, err := json.Marshal(map[string]any{"table": all.text, "urls": urls, "key": s.key})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program[0], program[1:]...)
	command.Stdin, command.WaitDelay = bytes.NewReader(input), time.Second
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &outcomes)
	}
	if err != nil {
		t.Fatalf("%v: %s%.1000s", err, problems.String(), out)
	}
	return outcomes
}

// python is one that can build wheels, with what Debian packages.
var python = sync.OnceValue(func() string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import setuptools, pip, venv, wheel").Run() == nil {
			return name
		}
	}
	return ""
})

// wheel builds the Python client, from a copy: building leaves files behind.
func wheel(t *testing.T) string {
	t.Helper()
	if python() == "" {
		t.Skip("there is no python3 with pip, setuptools, venv and wheel")
	}
	source, built := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(source, "src"), os.DirFS(folder+"python/src")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"pyproject.toml", "README.md", "LICENSE"} {
		content, err := os.ReadFile(folder + "python/" + file)
		if err == nil {
			err = os.WriteFile(filepath.Join(source, file), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	execute(t, python(), "-m", "pip", "--isolated", "wheel", "--no-index", "--no-build-isolation", "--no-deps",
		"-w", built, source)
	wheels, _ := filepath.Glob(filepath.Join(built, "*.whl"))
	if len(wheels) != 1 {
		t.Fatalf("wheels: %v", wheels)
	}
	archive, err := zip.OpenReader(wheels[0])
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, needed := range []string{"runlens/py.typed", "LICENSE"} {
		if !slices.ContainsFunc(archive.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, needed) }) {
			t.Errorf("the wheel has no %s", needed)
		}
	}
	return wheels[0]
}

// environment is the folder of a new virtual environment with a wheel in it.
func environment(t *testing.T, wheel string) string {
	t.Helper()
	place := filepath.Join(t.TempDir(), "environment")
	execute(t, python(), "-m", "venv", "--without-pip", place)
	execute(t, python(), "-m", "pip", "--isolated", "--python", place, "install", "--no-index", "--no-cache-dir", wheel)
	return place
}

func execute(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}
