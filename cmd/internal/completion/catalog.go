package completion

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
)

// fresh is how long a catalog is good without asking the server again. Only a new version of the server changes it.
const fresh = time.Hour

// catalog is the server's, at most as old as fresh, or the last known one of a server that does not answer. It is empty
// where none is known.
func (v Values) catalog(ctx context.Context, l *Line) *client.Catalog {
	server, err := v.Server(l)
	if err != nil {
		return &client.Catalog{}
	}
	address := sha256.Sum256([]byte(server.URL()))
	file := filepath.Join(v.Cache, "catalog-"+hex.EncodeToString(address[:8])+".json")
	known, written := v.cached(file)
	if age := v.Now().Sub(written); age >= 0 && age < fresh {
		return known
	}
	catalog, err := server.Catalog(ctx)
	if err != nil {
		return known
	}
	v.keep(file, catalog)
	return catalog
}

// cached reads a file of keep. It is empty, and written long ago, where there is none.
func (v Values) cached(file string) (*client.Catalog, time.Time) {
	var catalog client.Catalog
	content, err := os.ReadFile(file)
	if v.Cache == "" || err != nil || json.Unmarshal(content, &catalog) != nil {
		return &client.Catalog{}, time.Time{}
	}
	info, err := os.Stat(file)
	if err != nil {
		return &catalog, time.Time{}
	}
	return &catalog, info.ModTime()
}

// keep replaces a file as a whole, since several shells may write it at once. Without it the next Tab asks again.
func (v Values) keep(file string, catalog *client.Catalog) {
	if content, err := json.Marshal(catalog); err == nil && v.Cache != "" {
		_ = profile.Replace(file, content)
	}
}
