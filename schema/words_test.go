package schema_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired are words of our own that were replaced by standard ones, in forms that have no other meaning here.
var retired = map[string]string{
	`settl\w*`:                         "rollup, refresh, watermark",
	`\w*starters?(_?key\w*)?\b`:        "initiator, initiator key",
	`earliness`:                        "inverted timestamp",
	`\bwhole parts?\b`:                 "merged parts",
	`\brestless\b`:                     "back-off",
	`\banew\b`:                         "again",
	`\b(tak(e|es|en|ing)|took) back\b`: "roll back",
	`\bmend(s|ed|ing)?\b`:              "fix, repair",
	`\b(com(e|es|ing)|came) to rest\b`: "be idle",
}

// A rename is finished when the old word is gone, in code, comments, SQL, texts and pages alike.
func TestRetiredWordsDoNotComeBack(t *testing.T) {
	root := filepath.Join("..")
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (slices.Contains([]string{"node_modules", "bin", "data"}, name) ||
			strings.HasPrefix(name, ".") && name != ".ci"):
			return filepath.SkipDir
		case entry.IsDir() || !isText(name):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, hit := range retiredIn(string(content)) {
			t.Errorf("%s: %s", relative, hit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 300 {
		t.Errorf("%d files were read", files)
	}
}

// The test finds each word, and no word that only resembles one.
func TestRetiredWordsAreFound(t *testing.T) {
	text := "Settled until\nsettlement_marks\nstarter\nofStarters\nstarter_key\nearliness\nwhole parts\nrestless\nbuilt " +
		"anew\ntook back\nmended\ncomes to rest"
	if hits := retiredIn(text); len(hits) != strings.Count(text, "\n")+1 {
		t.Errorf("found %q", hits)
	}
	if hits := retiredIn("settings renewed amend recommend the whole of the parts a new one takes the rest"); hits != nil {
		t.Errorf("found %q", hits)
	}
}

// retiredIn returns the lines of a text with retired words, and what to write instead.
func retiredIn(text string) (hits []string) {
	for _, pattern := range slices.Sorted(maps.Keys(retired)) {
		expression := regexp.MustCompile(`(?i)` + pattern)
		if !expression.MatchString(text) {
			continue
		}
		for line := range strings.Lines(text) {
			if word := expression.FindString(line); word != "" {
				hits = append(hits, word+" (write: "+retired[pattern]+") in "+strings.TrimSpace(line))
			}
		}
	}
	return hits
}

func isText(name string) bool {
	texts := []string{".go", ".md", ".sql", ".sh", ".test", ".yaml", ".yml", ".json", "Makefile", "Dockerfile", "run"}
	return name != "package-lock.json" && name != "words_test.go" &&
		slices.ContainsFunc(texts, func(ending string) bool { return strings.HasSuffix(name, ending) })
}
