package profile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Questions are the names of the saved questions, in their order.
func (f Folder) Questions() ([]string, error) {
	names, err := f.Names("queries")
	return slices.DeleteFunc(names, func(name string) bool {
		return CheckName(name) != nil || strings.HasSuffix(name, ".yaml")
	}), err
}

// Names are those of the YAML files in a folder within it, without their ending, in their order.
func (f Folder) Names(within string) (names []string, err error) {
	if f == Nowhere {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(string(f), within))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}
