package conform

import (
	"fmt"
	"io/fs"
	"strings"
)

// A Named script is one of a folder's.
type Named struct {
	Name string // of its file, without the ending
	Script
}

// Scripts reads all scripts (*.test) of a folder, in the order of their names.
func Scripts(folder fs.FS) ([]Named, error) {
	files, err := fs.Glob(folder, "*.test")
	if err != nil {
		return nil, err
	}
	scripts := make([]Named, len(files))
	for i, file := range files {
		text, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, err
		}
		scripts[i].Name = strings.TrimSuffix(file, ".test")
		if scripts[i].Script, err = Parse(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return scripts, nil
}
