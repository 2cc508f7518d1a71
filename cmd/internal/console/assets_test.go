package console

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The scripts and styles of others are those of the packages that deploy/console pins, with their licences.
func TestAssetsAreThoseOfThePackages(t *testing.T) {
	packages := filepath.Join("..", "..", "..", "deploy", "console", "node_modules")
	if _, err := os.Stat(packages); err != nil {
		t.Skip("the packages are not there: `make console` fetches them")
	}
	for asset, original := range map[string]string{
		"htmx.min.js": "htmx.org/dist/htmx.min.js", "htmx.LICENSE": "htmx.org/LICENSE",
		"uPlot.iife.min.js": "uplot/dist/uPlot.iife.min.js", "uPlot.min.css": "uplot/dist/uPlot.min.css",
		"uPlot.LICENSE": "uplot/LICENSE",
	} {
		ours, err := files.ReadFile("assets/" + asset)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile(filepath.Join(packages, filepath.FromSlash(original)))
		if err != nil || !bytes.Equal(ours, theirs) {
			t.Errorf("%s is not %s (%v)", asset, original, err)
		}
	}
}
