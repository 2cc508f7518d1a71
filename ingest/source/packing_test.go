package source

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf16"

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
