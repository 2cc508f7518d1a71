package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/runlens/runlens/ingest/normalize"
)

// stream is a file that can only be read from its beginning, as standard input is.
func stream(format Format, kind normalize.Kind, content []byte) *File {
	return &File{Name: "-", Format: format, Kind: kind, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

func onDisk(tb testing.TB, format Format, kind normalize.Kind, content []byte) *File {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "records")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return &File{Name: path, Format: format, Kind: kind, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// show writes a record as one line: where it is, and its values or its fault.
func show(r *Record) string {
	place := fmt.Sprint(r.Line)
	if r.Fault != nil {
		return place + " fault " + r.Fault.Error()
	}
	var b strings.Builder
	for i := range normalize.Fields(r.Raw.Kind) {
		if r.Raw.Values[i] == nil {
			b.WriteString(" -")
			continue
		}
		text := r.Raw.Text(i)
		var at time.Time // an instant that is no text has milliseconds only
		if at.UnmarshalText(text) == nil {
			text = fmt.Append(nil, at.UnixMilli())
		}
		fmt.Fprintf(&b, " %q", text)
	}
	return place + " " + string(r.Raw.Kind) + b.String()
}

// records reads all records after a position, and the position after each.
func records(f *File, at Position) (shown []string, after []Position, err error) {
	reader, err := f.From(at)
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return shown, after, nil
		}
		if err != nil {
			return shown, after, err
		}
		shown, after = append(shown, show(record)), append(after, reader.Position())
	}
}

func mustRead(t *testing.T, f *File, at Position) ([]string, []Position) {
	t.Helper()
	shown, after, err := records(f, at)
	if err != nil {
		t.Fatalf("from %+v: %v", at, err)
	}
	return shown, after
}

// checkResume reads on from after every record, which must give the records that follow it.
func checkResume(t *testing.T, f *File) {
	t.Helper()
	shown, after := mustRead(t, f, Position{})
	for i, at := range after {
		tail, _ := mustRead(t, f, at)
		if got, want := strings.Join(tail, "\n"), strings.Join(shown[i+1:], "\n"); got != want {
			t.Fatalf("from %+v after %q:\n%s\nwant\n%s", at, shown[i], got, want)
		}
	}
}

func gzipped(tb testing.TB, content []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil || w.Close() != nil {
		tb.Fatal("gzip: ", err)
	}
	return b.Bytes()
}

func zstandard(tb testing.TB, content []byte) []byte {
	tb.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return w.EncodeAll(content, nil)
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]Format{
		"a.ndjson": NDJSON, "a.jsonl.gz": NDJSON, "-": NDJSON, "a": NDJSON, "csv": NDJSON, "a.csv.txt": NDJSON,
		"a.csv": CSV, "dir.parquet/a.CSV.gz": CSV, "a.csv.zst": CSV,
		"a.parquet": Parquet, "A.Parquet.ZST": Parquet,
	} {
		got, guessed := FormatOf(name)
		if got != want || guessed != slices.Contains([]string{"-", "a", "csv", "a.csv.txt"}, name) {
			t.Errorf("%s: %s, want %s, guessed %t", name, got, want, guessed)
		}
	}
}

// A file whose name says nothing of its format is refused if it does not begin as NDJSON does.
func TestGuessedFormats(t *testing.T) {
	for content, right := range map[string]bool{
		"# runlens\n\nThe README": false, "a,b\n": false, "[1]\n": false,
		"": true, "\n\n": true, agentsNDJSON: true, "\n {\"record\": \n": true,
	} {
		f := &File{Name: "README", Format: NDJSON, Guessed: true, Regular: true, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(content)), nil
		}}
		if err := f.Check(); (err == nil) != right {
			t.Errorf("%q: %v", content, err)
		}
		if f.Guessed = false; f.Check() != nil {
			t.Errorf("%q is refused where the format was named", content)
		}
	}
}

const agentsNDJSON = "\xef\xbb\xbf" +
	`{"record":"agent","organization_id":"org","agent_id":"a","name":"N","updated_at":"t"}

{"record":"agent","organization_id":"org","agent_id":"b","name":"Ünï","slug":null,"updated_at":"t"}
{"record":"agent","organization_id":
{"record":"attribution","organization_id":"org","source":"s"}` + "\r\n" +
	`{"record":"agent","organization_id":"org","agent_id":"c","name":"","slug":"s","updated_at":"t"}`

const agentsCSV = "\xef\xbb\xbf" + `organization_id,name,agent_id,slug,updated_at
org,N,a,,t

org,"two
lines",b,s,t` + "\r\n" + `org,bad
org,"",c,"",t`

// Whatever a file is packed in, and whatever its name says, its records are the same, and reading
// goes on after any of them.
func TestPacked(t *testing.T) {
	for _, c := range []struct {
		format Format
		text   string
		want   string
	}{
		{NDJSON, agentsNDJSON, `1 agent "org" "a" "N" - - "t"
3 agent "org" "b" "Ünï" - - "t"
4 fault is not valid JSON: it ends within a value; a record is one line
5 attribution "org" - - - - - - - "s" -
6 agent "org" "c" "" "s" - "t"`},
		{CSV, agentsCSV, `2 agent "org" "a" "N" - - "t"
4 agent "org" "b" "two\nlines" "s" - "t"
6 fault is not valid CSV: wrong number of fields
7 agent "org" "c" "" - - "t"`},
	} {
		text := []byte(c.text)
		half := len(text) / 2
		for packing, content := range map[string][]byte{
			"plain":                text,
			"gzip":                 gzipped(t, text),
			"gzip of many members": append(gzipped(t, text[:half]), gzipped(t, text[half:])...),
			"zstd":                 zstandard(t, text),
			"zstd of many frames":  append(zstandard(t, text[:half]), zstandard(t, text[half:])...),
		} {
			t.Run(string(c.format)+" "+packing, func(t *testing.T) {
				for _, f := range []*File{onDisk(t, c.format, normalize.KindAgent, content),
					stream(c.format, normalize.KindAgent, content)} {
					shown, _ := mustRead(t, f, Position{})
					if got := strings.Join(shown, "\n"); got != c.want {
						t.Errorf("got\n%s\nwant\n%s", got, c.want)
					}
					if f.BytesRead() != int64(len(content)) {
						t.Errorf("%d bytes read, want %d", f.BytesRead(), len(content))
					}
					checkResume(t, f)
				}
			})
		}
	}
}

// What is packed and ends too early is an error: the records after are missing.
func TestCutOff(t *testing.T) {
	text := []byte(strings.Repeat(strings.Split(agentsNDJSON, "\n")[2]+"\n", 2000))
	for packing, content := range map[string][]byte{"gzip": gzipped(t, text), "zstd": zstandard(t, text)} {
		if _, _, err := records(stream(NDJSON, "", content[:len(content)-9]), Position{}); err == nil {
			t.Errorf("%s: no error", packing)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	gone := &File{
		Format: NDJSON,
		Open:   func() (io.ReadCloser, error) { return os.Open(filepath.Join(t.TempDir(), "none")) },
	}
	if _, err := gone.From(Position{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for _, magic := range [][]byte{gzipMagic, zstdMagic} {
		if _, _, err := records(stream(NDJSON, "", append(slices.Clip(magic), "nonsense"...)),
			Position{}); err == nil {
			t.Errorf("%x: no error", magic)
		}
	}
}

func TestEmptyFile(t *testing.T) {
	for _, content := range [][]byte{nil, gzipped(t, nil), zstandard(t, nil)} {
		if shown, _ := mustRead(t, stream(NDJSON, "", content), Position{}); len(shown) > 0 {
			t.Errorf("got %q", shown)
		}
	}
}
