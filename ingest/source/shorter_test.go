package source

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
)

// A file that becomes shorter while it is read has lost records that nobody has read. One that grows has more of them.
// What came before a file, such as the beginning of a redirected one, is none of its own.
func TestFilesThatChangeMeanwhile(t *testing.T) {
	text := []byte(strings.Repeat(strings.Split(agentsNDJSON, "\n")[2]+"\n", 20_000)) // several buffers
	line := int64(len(text) / 20_000)
	csv := append([]byte("organization_id,agent_id,name,updated_at\n"), bytes.Repeat([]byte("org,a,N,t\n"), 100_000)...)
	for name, c := range map[string]struct {
		format  Format
		content []byte
		begin   Position // the reading of records
		from    int64    // the reading of the file
		size    int64    // later
		want    int      // records; -1 for an error
	}{
		"unchanged":             {NDJSON, text, Position{}, 0, int64(len(text)), 20_000},
		"emptied":               {NDJSON, text, Position{}, 0, 0, -1},
		"shorter by a line":     {NDJSON, text, Position{}, 0, int64(len(text)) - line, -1},
		"shorter where resumed": {NDJSON, text, Position{Offset: line, Lines: 1}, 0, int64(len(text)) - line, -1},
		"resumed":               {NDJSON, text, Position{Offset: line, Lines: 1}, 0, int64(len(text)), 19_999},
		"longer":                {NDJSON, text, Position{}, 0, int64(len(text)) + 100, 20_001},
		"begun before":          {NDJSON, text, Position{}, line, int64(len(text)), 19_999},
		"begun before, shorter": {NDJSON, text, Position{}, line, int64(len(text)) - line, -1},
		"CSV":                   {CSV, csv, Position{}, 0, int64(len(csv)), 100_000},
		"shorter CSV":           {CSV, csv, Position{}, 0, int64(len(csv)) - 10, -1},
	} {
		t.Run(name, func(t *testing.T) {
			f := onDisk(t, c.format, normalize.KindAgent, c.content)
			path := f.Name
			f.Open = func() (io.ReadCloser, error) {
				file, err := os.Open(path)
				if err == nil {
					_, err = file.Seek(c.from, io.SeekStart)
				}
				return file, err
			}
			in, err := f.From(c.begin)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := os.Truncate(path, c.size); err != nil {
				t.Fatal(err)
			}
			n := 0
			for ; err == nil; n++ {
				_, err = in.Next()
			}
			switch n--; {
			case c.want >= 0 && (n != c.want || !errors.Is(err, io.EOF)):
				t.Errorf("%d records, then %v", n, err)
			case c.want < 0 && !errors.Is(err, errShrank):
				t.Errorf("after %d records: %v", n, err)
			}
		})
	}
}
