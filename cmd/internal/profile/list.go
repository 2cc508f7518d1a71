package profile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Questions are the names of the saved questions, in their order.
func (f Folder) Questions() (names []string, err error) {
	if f == Nowhere {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(string(f), "queries"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".yaml")
		if ok && CheckName(name) == nil && !strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	return names, nil
}
