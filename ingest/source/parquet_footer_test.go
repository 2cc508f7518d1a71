package source

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
)

// A footer whose lengths are damaged is refused before memory is taken for what it says.
func TestParquetFooterLengths(t *testing.T) {
	list := func(size uint64) []byte { // a field that is a list of structs, at the place of the schema
		return binary.AppendUvarint([]byte{0x29, 0xfc}, size)
	}
	file := func(footer []byte, length uint32) []byte {
		content := append([]byte("PAR1"), footer...)
		return append(binary.LittleEndian.AppendUint32(content, length), "PAR1"...)
	}
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"a list longer than the footer": {file(list(1<<31-1), 7), invalidFile + "the footer: "},
		"many items": {file(append(list(1<<20), make([]byte, 1<<20)...), 1<<20+5),
			"has a footer of more than"},
		"a footer longer than the file": {file(list(1), 1<<32-1), invalidFile + "a footer of 4294967295 bytes"},
		"a large footer": {file(make([]byte, maxFooterBytes+1), maxFooterBytes+1),
			"has a footer of 16777217 bytes"},
		"no schema":         {file([]byte{0}, 1), invalidFile},
		"nothing":           {[]byte("PAR1"), invalidFile},
		"an encrypted file": {append(file([]byte{0}, 1)[:9], "PARE"...), "is encrypted, which is not supported"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readDamaged(c.content)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; err == nil || !strings.HasPrefix(err.Error(), c.says) ||
			taken > 40<<20 {
			t.Errorf("%s: %v, %d KiB", name, err, taken>>10)
		}
	}
}

// FuzzParquet reads damaged files of every writer: whatever they are, the error says so, and nothing else happens.
func FuzzParquet(f *testing.F) {
	archive, err := zip.OpenReader(writtenByOthers)
	if err != nil {
		f.Fatal(err)
	}
	defer archive.Close()
	for _, entry := range archive.File {
		in, err := entry.Open()
		if err != nil {
			f.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, uint32(0), byte(0), uint32(0), byte(0), false)
	}
	f.Fuzz(func(t *testing.T, content []byte, at uint32, flip byte, also uint32, other byte, large bool) {
		if len(content) == 0 || len(content) > 1<<20 {
			return
		}
		damaged := bytes.Clone(content)
		damaged[int(at)%len(damaged)] ^= flip
		damaged[int(also)%len(damaged)] ^= other
		usual := largePage
		defer func() { largePage = usual }()
		if large {
			largePage = 0
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readDamagedOf(damaged, normalize.KindAgent)
		runtime.ReadMemStats(&after)
		var unfit columnError
		if err != nil && !strings.HasPrefix(err.Error(), invalidFile) && !errors.As(err, &unfit) {
			t.Errorf("%v", err)
		}
		if err != nil && strings.Contains(err.Error(), "runtime error") {
			t.Errorf("it panicked: %v", err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 256<<20 {
			t.Errorf("%d MiB were taken for %d bytes: %v", taken>>20, len(damaged), err)
		}
	})
}
