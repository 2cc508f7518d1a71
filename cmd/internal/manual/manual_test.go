package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// What means something in Markdown means nothing in a page: texts appear as they are in --help.
func TestTextsAreLiteral(t *testing.T) {
	const text = "a *b* _c_ <d> `e` [f](g) ![h](i) ~j~ k|l &amp; #m"
	var program struct {
		Do struct {
			Flag string `help:"${text}"`
			Arg  string `arg:"" help:"${text}"`
		} `cmd:"" help:"${text}"`
	}
	parser, err := kong.New(&program, kong.Name("program"), kong.Description("Summary.\n\n"+text), kong.Vars{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "man1")
	m := Manual{Program: parser.Model, Describe: func(v *kong.Value) string { return v.Help }, Version: "1"}
	if pages, err := m.Write(folder); err != nil || pages != 2 {
		t.Fatal(pages, err)
	}
	for page, want := range map[string]int{"program.1": 2, "program-do.1": 3} { // its own text, and those of its entries
		content, err := os.ReadFile(filepath.Join(folder, page))
		if got := strings.Count(string(content), text); err != nil || got != want {
			t.Errorf("%s has the text %d times, want %d: %v\n%s", page, got, want, err, content)
		}
	}
}
