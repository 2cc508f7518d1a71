package cells

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Most is how many cells there may be.
const Most = Slots

// A Cell is one ClickHouse service, as the file of cells names it.
type Cell struct {
	// Name is 1 to 32 characters of a-z 0-9 - and stands in the store, in logs and in metrics. It never changes.
	Name string `yaml:"name"`
	// URL is that of a ClickHouse server, PasswordFile the file with its user's password. Without a URL the cell is an
	// embedded engine with its data in DataDir.
	URL          string `yaml:"url"`
	PasswordFile string `yaml:"password_file"`
	DataDir      string `yaml:"data_dir"`
	// Weight is the cell's part of the organizations when they are placed the first time; 1 by default.
	Weight int `yaml:"weight"`
}

var namePattern = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// ReadFile reads the file of RUNLENS_CELLS: at least one cell. Paths in it are relative to its folder. Its error says
// what is wrong with the file.
func ReadFile(path string) ([]Cell, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Cells []Cell `yaml:"cells"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if n := len(file.Cells); n == 0 || n > Most {
		return nil, fmt.Errorf("%s: it names %d cells; 1 to %d are possible, each as: "+
			"{name: eu-1, url: clickhouse://runlens@host:9000/runlens}", path, n, Most)
	}
	seen := map[string]string{}
	for i := range file.Cells {
		c := &file.Cells[i]
		if err := c.complete(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("%s: cell %d: %w", path, i+1, err)
		}
		for _, own := range []string{"the name " + c.Name, "the store " + c.URL + c.DataDir} {
			if other, taken := seen[own]; taken {
				return nil, fmt.Errorf("%s: the cells %s and %s have %s", path, other, c.Name, own)
			}
			seen[own] = c.Name
		}
	}
	return file.Cells, nil
}

// complete checks a cell and fills what has a default.
func (c *Cell) complete(dir string) error {
	switch {
	case !namePattern.MatchString(c.Name):
		return fmt.Errorf("the name %q must be 1 to 32 characters of a-z 0-9 -", c.Name)
	case (c.URL == "") == (c.DataDir == ""):
		return errors.New("it needs either a url, of a ClickHouse server, or a data_dir, of an embedded engine")
	case c.PasswordFile != "" && c.URL == "":
		return errors.New("password_file is for a url")
	case c.Weight < 0:
		return errors.New("weight must be at least 1")
	case c.Weight == 0:
		c.Weight = 1
	}
	for _, path := range []*string{&c.PasswordFile, &c.DataDir} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	return nil
}
