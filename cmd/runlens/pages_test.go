package main_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	pageLink = regexp.MustCompile(`\]\(([^)#:\s]+)[^):]*\)`)
	// An identifier of a package, and the path of a file or folder of ours.
	qualified = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*)`)
	ourPath   = regexp.MustCompile(`^(cmd|olap|ingest|http|schema|deploy|testdata)/[a-z0-9_./-]+$`)
)

// Pages name only what there is: identifiers of our packages, our files and folders, and pages that they link to.
func TestPagesNameWhatThereIs(t *testing.T) {
	files := readTracked(t, ".")
	known := knownNames(files)
	for name, content := range files {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, gone := range known.missing(name, content) {
			t.Errorf("%s names %s, which does not exist", name, gone)
		}
	}
}

// TestGoneNamesAreFound checks a page that names one thing of each kind that is there, and one that is not.
func TestGoneNamesAreFound(t *testing.T) {
	known := knownNames(map[string]string{
		"olap/plan/plan.go": "package plan\n\nfunc Of() {}\n", "olap/plan/plan_test.go": "func Gone() {}",
		"schema/DESIGN.md": "", "schema/decisions/delta.md": "",
	})
	page := "`plan.Of(q)` and `plan.Gone`; `other.Name`; `olap/plan/plan.go`, `olap/plan/` and `olap/gone.go`;\n" +
		"[one](decisions/delta.md#part), [two](decisions/gone.md), [three](https://example.com/a.md).\n" +
		"```\n`plan.Example`\n```\n"
	want := []string{"plan.Gone", "olap/gone.go", "decisions/gone.md"}
	if got := known.missing("schema/DESIGN.md", page); !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
}

// Names are what pages may name.
type names struct {
	paths    map[string]bool   // of files and folders
	packages map[string]string // the code of all packages of one name, without tests
}

func knownNames(files map[string]string) names {
	known := names{paths: map[string]bool{}, packages: map[string]string{}}
	for name, content := range files {
		for at := name; at != "."; at = path.Dir(at) {
			known.paths[at] = true
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			of := path.Base(path.Dir(name))
			known.packages[of] += content
		}
	}
	return known
}

// missing are the names in a page, but for its blocks of code, of which nothing is known.
func (n names) missing(page string, content string) (gone []string) {
	for i, text := range strings.Split(content, "```") {
		if i%2 == 1 {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
			code := span[1]
			if parts := qualified.FindStringSubmatch(code); parts != nil && n.packages[parts[1]] != "" {
				if !regexp.MustCompile(`\b` + parts[2] + `\b`).MatchString(n.packages[parts[1]]) {
					gone = append(gone, parts[0])
				}
			}
			if ourPath.MatchString(code) && !n.paths[path.Clean(code)] {
				gone = append(gone, code)
			}
		}
		for _, link := range pageLink.FindAllStringSubmatch(text, -1) {
			if target := link[1]; !n.paths[path.Join(path.Dir(page), target)] {
				gone = append(gone, target)
			}
		}
	}
	return gone
}
