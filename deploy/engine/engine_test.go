package engine_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/runlens/runlens/deploy/engine"
)

// Every package that package.json names has a platform, in its version, and no other platform has one.
func TestPackagesOfPlatforms(t *testing.T) {
	text, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ OptionalDependencies map[string]string }
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"linux", "darwin"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			found, ok := engine.PackageFor(system, architecture)
			if version := manifest.OptionalDependencies[found.Name]; !ok || version == "" || version != found.Version {
				t.Errorf("%s/%s has %q, and package.json version %q", system, architecture, found, version)
			}
			delete(manifest.OptionalDependencies, found.Name)
		}
	}
	if len(manifest.OptionalDependencies) > 0 {
		t.Errorf("of no platform: %v", manifest.OptionalDependencies)
	}
	if found, ok := engine.PackageFor("windows", "amd64"); ok {
		t.Errorf("windows has %q", found)
	}
}
