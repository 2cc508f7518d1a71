package profile

import (
	"os"
	"testing"
)

// A profile is kept whatever little the file has before.
func TestKeepInAlmostNothing(t *testing.T) {
	for _, before := range []string{"", "# none yet\n", "{}\n", "null\n", "~"} {
		folder := Folder(t.TempDir())
		if err := os.WriteFile(folder.profiles(), []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		want := Profile{URL: "http://127.0.0.1:8080", Key: "k"}
		if _, err := folder.Keep(Default, want); err != nil {
			t.Errorf("%q: %v", before, err)
		}
		if got, ok, err := folder.Profile(Default); got != want || !ok || err != nil {
			t.Errorf("%q: %v, %t, %v", before, got, ok, err)
		}
	}
}
