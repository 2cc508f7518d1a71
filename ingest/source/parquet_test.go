package source

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/runlens/runlens/ingest/normalize"
)

func TestParquetLayouts(t *testing.T) {
	for name, l := range layouts {
		for _, kind := range normalize.Kinds {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				f := onDisk(t, Parquet, kind, l.write(t, l.nodes(kind), sample))
				got, after := mustRead(t, f, Position{})
				if want := l.samples(kind); strings.Join(got, "\n") != strings.Join(want, "\n") {
					for i := range min(len(got), len(want)) {
						if got[i] != want[i] {
							t.Fatalf("got\n%s\nwant\n%s", got[i], want[i])
						}
					}
					t.Fatalf("%d records, want %d", len(got), len(want))
				}
				for i, at := range after {
					if at != (Position{Lines: i + 1}) {
						t.Fatalf("position %+v after record %d", at, i+1)
					}
				}
				if l.rows < 100 {
					checkResume(t, f)
				}
			})
		}
	}
}

// What is finer than a millisecond is cut off towards the past, whichever instant it is.
func TestParquetInstants(t *testing.T) {
	for want, c := range map[string]struct {
		form form
		n    int64
	}{
		"2026-01-31T09:34:56.123Z": {millis, 1769852096123},
		"2026-01-31T09:34:56.000Z": {micros, 1769852096000007},
		"2026-01-31T09:34:56.124Z": {nanos, 1769852096124456789},
		"1969-12-31T23:59:59.999Z": {millis, -1},
		"1969-12-31T23:59:59.998Z": {nanos, -1000001},
		"1970-01-01T00:00:00.000Z": {micros, 0},
		"2299-12-31T23:59:59.999Z": {millis, 10413791999999},
	} {
		column := column{form: c.form}
		raw := normalize.Raw{Kind: normalize.KindRun, Binary: 1 << 2}
		if raw.Values[2] = column.shown(binary.LittleEndian.AppendUint64(nil, uint64(c.n))); string(raw.Text(2)) != want {
			t.Errorf("got %s, want %s", raw.Text(2), want)
		}
	}
}

// Where the end cannot be read first the content goes to a temporary file, which nobody has to remove.
func TestParquetStreams(t *testing.T) {
	content := smallLayout.write(t, smallLayout.nodes(normalize.KindRun), sample)
	temporary := t.TempDir()
	sizes := map[string]int{"gzip": len(gzipped(t, content)), "zstd": len(zstandard(t, content))}
	for name, f := range map[string]*File{
		"file":   onDisk(t, Parquet, normalize.KindRun, content),
		"stream": stream(Parquet, normalize.KindRun, content),
		"gzip":   onDisk(t, Parquet, normalize.KindRun, gzipped(t, content)),
		"zstd":   stream(Parquet, normalize.KindRun, zstandard(t, content)),
		"pipe": {Format: Parquet, Kind: normalize.KindRun, Open: func() (io.ReadCloser, error) {
			r, w, err := os.Pipe()
			go func() {
				w.Write(content)
				w.Close()
			}()
			return r, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", temporary)
			if got, _ := mustRead(t, f, Position{}); !slices.Equal(got, smallLayout.samples(normalize.KindRun)) {
				t.Errorf("got %s", strings.Join(got, "\n"))
			}
			whole := f.BytesRead()
			if want := cmp.Or(sizes[name], len(content)); whole != int64(want) {
				t.Errorf("%d bytes read, want %d", whole, want)
			}
			checkResume(t, f)
			reader, err := f.From(Position{Lines: 29})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := reader.Next(); err != nil || f.BytesRead() != whole/2 {
				t.Errorf("in the middle %d bytes of %d were read, %v", f.BytesRead(), whole, err)
			}
			if left, err := os.ReadDir(temporary); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if err := reader.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	f := stream(Parquet, normalize.KindRun, gzipped(t, content))
	t.Setenv("TMPDIR", temporary+"/none")
	if _, err := f.From(Position{}); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "not a valid") {
		t.Errorf("without a place for a temporary file: %v", err)
	}
}

// A resumed read does not touch what lies before: its pages are damaged here.
func TestParquetSeeks(t *testing.T) {
	l := smallLayout
	content := l.write(t, l.nodes(normalize.KindRun), sample)
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range file.OffsetIndexes()[:2*len(normalize.Fields(normalize.KindRun))] {
		page := index.PageLocations[0]
		content[page.Offset+int64(page.CompressedPageSize)-1] ^= 0xff // after its header
	}
	f := onDisk(t, Parquet, normalize.KindRun, content)
	for _, row := range []int{2*l.perGroup - 1, 2 * l.perGroup, l.rows - 1, l.rows} {
		if got, _ := mustRead(t, f, Position{Lines: row}); !slices.Equal(got, l.samples(normalize.KindRun)[row:]) {
			t.Errorf("from %d: got %s", row, strings.Join(got, "\n"))
		}
	}
	if _, _, err := records(f, Position{}); err == nil {
		t.Error("no page is damaged")
	}
	if _, _, err := records(f, Position{Lines: l.rows + 1}); err == nil ||
		!strings.Contains(err.Error(), "has only 60 rows") {
		t.Errorf("after the end: %v", err)
	}
}
