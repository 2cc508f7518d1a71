package source

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/gzip"

	"github.com/runlens/runlens/ingest/normalize"
)

// What cannot be unpacked, and what is no UTF-8, is named instead of being read as garbage.
func TestNamesWhatItCannotRead(t *testing.T) {
	wide := func(mark string, high int) []byte {
		var b bytes.Buffer
		b.WriteString(mark)
		for _, unit := range utf16.Encode([]rune(agentsNDJSON[3:])) {
			pair := [2]byte{byte(unit), byte(unit >> 8)}
			b.Write([]byte{pair[high], pair[1-high]})
		}
		return b.Bytes()
	}
	line := strings.Split(agentsNDJSON, "\n")[2]
	for want, content := range map[string][]byte{
		"packed with xz;":           []byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46"),
		"packed with lz4;":          []byte("\x04\x22\x4d\x18\x64\x40\xa7\x6f\x00\x00\x00\x05"),
		"packed with lz4 (of":       []byte("\x02\x21\x4c\x18\x10\x00\x00\x00"),
		"packed with bzip2;":        []byte("BZh91AY&SY\x12\x34"),
		"packed with zip;":          []byte("PK\x03\x04\x14\x00\x00\x00\x08\x00"),
		"packed with 7z;":           []byte("7z\xbc\xaf\x27\x1c\x00\x04"),
		"packed with compress (.Z)": []byte("\x1f\x9d\x90\x7b\x44"),
		"packed with lzma;":         []byte("\x5d\x00\x00\x80\x00\xff\xff"),
		"is packed twice;":          gzipped(t, zstandard(t, []byte(line))),
		"is a Parquet file;":        smallLayout.write(t, smallLayout.nodes(normalize.KindAgent), sample),
		"it seems, UTF-16 or":       wide("\xff\xfe", 0),
		"is no UTF-8 text but":      wide("\xfe\xff", 1),
		"iconv -f UTF-16 -t UTF-8":  wide("", 0),
		"seems, UTF-16":             wide("", 1),
	} {
		for packing, content := range map[string][]byte{"plain": content, "gzip": gzipped(t, content),
			"zstd": zstandard(t, content)} {
			for _, format := range []Format{NDJSON, CSV} {
				_, _, err := records(stream(format, normalize.KindAgent, content), Position{})
				if packing != "plain" && want == "is packed twice;" {
					continue
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s %s: %v, want %s", packing, format, err, want)
				}
			}
		}
	}
	if _, _, err := records(stream(Parquet, normalize.KindAgent, []byte("\xfd7zXZ\x00\x00\x04")),
		Position{}); err == nil ||
		!strings.Contains(err.Error(), "packed with xz;") {
		t.Errorf("Parquet: %v", err)
	}
	// What only resembles it.
	for _, content := range [][]byte{
		[]byte("BZh,PK,LZIP\n" + line), append([]byte("\x5e\x2a\x4d\x18\x03\x00\x00\x00abc"), zstandard(t, []byte(line))...),
		[]byte("\x00\n" + line),
	} {
		if got, _ := mustRead(t, stream(NDJSON, "", content), Position{}); len(got) == 0 ||
			!strings.HasSuffix(got[len(got)-1], `"Ünï" - - "t"`) {
			t.Errorf("%q: got %q", content, got)
		}
	}
}

// Zeros after the members of a gzip file, with which tapes and tar pad it, are no garbage; anything else is.
func TestGzipPaddedWithZeros(t *testing.T) {
	line := strings.Split(agentsNDJSON, "\n")[2] + "\n"
	member, zeros := gzipped(t, []byte(line)), make([]byte, 10_240)
	for want, content := range map[int][]byte{
		1: append(bytes.Clone(member), zeros...),
		2: slices.Concat(member, zeros[:1], member, zeros[:3]),
		3: slices.Concat(member, member, zeros, member),
	} {
		for name, f := range map[string]*File{"stream": stream(NDJSON, "", content), "file": onDisk(t, NDJSON, "", content)} {
			if got, _ := mustRead(t, f, Position{}); len(got) != want {
				t.Errorf("%s: %d records, want %d", name, len(got), want)
			}
			checkResume(t, f)
		}
	}
	for _, garbage := range []string{"x", "\x00\x00x", "\x1f"} {
		if _, _, err := records(stream(NDJSON, "", append(bytes.Clone(member), garbage...)), Position{}); err == nil {
			t.Errorf("%q after a member: no error", garbage)
		}
	}
}

// A gzip file that is cut off anywhere within a member is not taken for a whole one: nor within the name of the member,
// where the decoder took the end of the file for the end of what is packed, nor at its beginning.
func TestCutOffMembers(t *testing.T) {
	line := strings.Split(agentsNDJSON, "\n")[2] + "\n"
	var named bytes.Buffer
	w := gzip.NewWriter(&named)
	w.Name, w.Comment, w.Extra = "agents.ndjson", "of a day", []byte("more")
	_, _ = w.Write([]byte(line))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	before := gzipped(t, []byte(line))
	if got, _ := mustRead(t, stream(NDJSON, "", slices.Concat(before, named.Bytes())), Position{}); len(got) != 2 {
		t.Errorf("both members have %d records", len(got))
	}
	for cut := 2; cut < named.Len(); cut++ { // one byte is a line of text
		for name, first := range map[string][]byte{"the only member": nil, "the second member": before} {
			content := slices.Concat(first, named.Bytes()[:cut])
			if got, _, err := records(stream(NDJSON, "", content), Position{}); err == nil {
				t.Errorf("%s cut off after %d bytes: %d records and no error", name, cut, len(got))
			}
		}
	}
}

// Files that were made of several have a byte order mark in the middle, and as CSV the header again.
func TestConcatenatedFiles(t *testing.T) {
	const mark = "\ufeff"
	line := strings.Split(agentsNDJSON, "\n")[2] + "\n"
	if got, _ := mustRead(t, stream(NDJSON, "", []byte(mark+line+mark+line)), Position{}); len(got) != 2 ||
		strings.Contains(got[1], "fault") {
		t.Errorf("NDJSON: %q", got)
	}
	part := mark + agentHeader + "o,a,n,,,t\n"
	for name, content := range map[string]string{
		"a mark and the header":         part + part,
		"the header":                    part + strings.TrimPrefix(part, mark),
		"a mark":                        part + mark + "o,a,n,,,t\n",
		"a mark, and quotes":            part + mark + "\"o\",a,n,,,t\n",
		"a mark and a header in quotes": part + mark + "\"" + strings.Replace(agentHeader, ",", "\",", 1) + "o,a,n,,,t\n",
	} {
		f := stream(CSV, normalize.KindAgent, []byte(content))
		got, _ := mustRead(t, f, Position{})
		if len(got) != 2 || !strings.HasSuffix(got[1], ` agent "o" "a" "n" - - "t"`) {
			t.Errorf("%s: %q", name, got)
		}
		checkResume(t, f)
	}
}

// What cannot be read is found without reading all of it, and nothing else is refused.
func TestCheck(t *testing.T) {
	small := smallLayout.write(t, smallLayout.nodes(normalize.KindAgent), sample)
	for name, c := range map[string]struct {
		format  Format
		content []byte
		want    string
	}{
		"NDJSON":             {NDJSON, []byte(agentsNDJSON), ""},
		"CSV":                {CSV, []byte(agentHeader), ""},
		"Parquet":            {Parquet, small, ""},
		"packed Parquet":     {Parquet, gzipped(t, small), ""},
		"UTF-16":             {NDJSON, []byte("\xff\xfe{\x00"), "UTF-16"},
		"zip":                {NDJSON, []byte("PK\x03\x04"), "zip"},
		"half a gzip header": {NDJSON, gzipped(t, []byte("x"))[:5], "is cut off"},
		"half of zstd":       {NDJSON, zstandard(t, []byte(agentsNDJSON))[:50], "is cut off"},
		"a window too large": {NDJSON, []byte("\x28\xb5\x2f\xfd\x00\x91\x01\x00\x00"), "more than 128 MiB"},
		"an unknown column":  {CSV, []byte("colour\n"), "colour"},
		"half of Parquet":    {Parquet, small[:len(small)/2], "not a valid Parquet file"},
		"zeros, packed":      {Parquet, gzipped(t, make([]byte, 100)), "not a valid Parquet file"},
	} {
		f := onDisk(t, c.format, normalize.KindAgent, c.content)
		f.Regular = true
		if err := f.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	missing := &File{Regular: true, Open: func() (io.ReadCloser, error) { return nil, os.ErrPermission }}
	if err := missing.Check(); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	missing.Regular = false
	if err := missing.Check(); err != nil {
		t.Error(err)
	}
}
