package source

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/runlens/runlens/ingest/normalize"
)

// everyPageLarge makes all pages be unpacked into temporary files until the test ends.
func everyPageLarge(t *testing.T) {
	t.Helper()
	usual := largePage
	largePage = 0
	t.Cleanup(func() { largePage = usual })
}

// Pages that do not fit into memory are read as all others, whoever wrote them.
func TestParquetLargePages(t *testing.T) {
	everyPageLarge(t)
	t.Run("other writers", TestParquetOfOtherWriters)
	t.Run("seeks", TestParquetSeeks)
}

// A page that is unpacked piece by piece is what was packed, however far back its matches lie.
func TestLargePagesOfEveryCodec(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 0, 40<<20)
	for len(content) < 40<<20-20_000 {
		switch r.IntN(3) {
		case 0:
			for range r.IntN(3000) {
				content = append(content, byte(r.Uint32()))
			}
		case 1:
			content = append(content, bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(2000))...)
		default: // from far back as well
			if n := len(content); n > 0 {
				begin := r.IntN(n)
				content = append(content, content[begin:min(n, begin+r.IntN(20_000))]...)
			}
		}
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithWindowSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	for codec, packer := range map[format.CompressionCodec]func(content []byte) ([]byte, error){
		format.Snappy: func(c []byte) ([]byte, error) { return parquet.Snappy.Encode(nil, c) },
		format.Gzip:   func(c []byte) ([]byte, error) { return parquet.Gzip.Encode(nil, c) },
		format.Brotli: func(c []byte) ([]byte, error) { return parquet.Brotli.Encode(nil, c) },
		format.Lz4Raw: func(c []byte) ([]byte, error) { return parquet.Lz4Raw.Encode(nil, c) },
		format.Zstd:   func(c []byte) ([]byte, error) { return encoder.EncodeAll(c, nil), nil },
	} {
		want := content
		if codec != format.Zstd {
			want = content[:3<<20]
		}
		packed, err := packer(want)
		if err != nil {
			t.Fatal(err)
		}
		s := new(spool)
		err = s.unpack(codec, bytes.NewReader(packed), int64(len(want)))
		got := make([]byte, s.size)
		if err == nil {
			_, err = s.ReadAt(got, 0)
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, or wrong ones: %v", codec, len(got), len(want), err)
		}
		for _, damage := range []int64{-1, 1} {
			if err := s.unpack(codec, bytes.NewReader(packed), int64(len(want))+damage); err == nil {
				t.Errorf("%s: %d more bytes than there are: no error", codec, damage)
			}
		}
		if err := s.unpack(codec, bytes.NewReader(packed[:len(packed)/2]), int64(len(want))); err == nil {
			t.Errorf("%s: cut off: no error", codec)
		}
		s.close()
	}
}

// Copies lie further back than what is in memory.
func TestMatchesFromTheFile(t *testing.T) {
	s, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var want []byte
	for i := range 300_000 {
		want = append(want, byte(i%251))
	}
	m := &matches{out: s, written: s}
	if err := m.literal(bytes.NewReader(want), int64(len(want))); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]int{{300_000, 64}, {299_999, 200_000}, {3, 10}, {400_000, 123_456}, {70_000, 80_000}} {
		for range c[1] {
			want = append(want, want[len(want)-c[0]])
		}
		if err := m.copy(int64(c[0]), int64(c[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.flush(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, s.size)
	if _, err := s.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, or wrong ones: %v", len(got), len(want), err)
	}
	for _, back := range []int64{0, -1, int64(len(want)) + 1} {
		if err := m.copy(back, 1); err == nil {
			t.Errorf("a copy from %d bytes back of %d: no error", back, len(want))
		}
	}
}

// A text that is far too long is a fault of its record, in every encoding, and is not kept whole. The texts after it
// are right, also where they share their begin with it.
func TestParquetLongTexts(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	names := []string{"first", x(MaxLineBytes + 1), "x2", x(MaxLineBytes+2) + "y", x(2*keptBytes) + "z",
		x(MaxLineBytes+2) + "yz", x(MaxLineBytes), "last"}
	for name, text := range map[string]parquet.Node{
		"plain": parquet.String(), "dictionary": parquet.Encoded(parquet.String(), &parquet.RLEDictionary),
		"lengths":  parquet.Encoded(parquet.String(), &parquet.DeltaLengthByteArray),
		"prefixes": parquet.Encoded(parquet.String(), &parquet.DeltaByteArray),
	} {
		l := layout{id: parquet.UUID(), instant: parquet.Timestamp(parquet.Millisecond), text: text, rows: len(names),
			perGroup: len(names)}
		content := l.write(t, l.nodes(normalize.KindAgent), func(field string, row int) []byte {
			switch {
			case field == "name":
				return []byte(names[row])
			case field == "slug" || field == "deleted_at":
				return nil
			default:
				return sample(field, row)
			}
		})
		f := onDisk(t, Parquet, normalize.KindAgent, content)
		reader, err := f.From(Position{})
		if err != nil {
			t.Fatal(err)
		}
		for row, want := range names {
			record, err := reader.Next()
			if err != nil {
				t.Fatal(name, err)
			}
			got, tooLong := string(record.Raw.Values[2]), len(want) > MaxLineBytes
			if fault := "name: is longer than 1048576 bytes"; (record.Fault != nil) != tooLong ||
				tooLong && (record.Fault.Error() != fault || got != want[:keptBytes]) || !tooLong && got != want {
				t.Errorf("%s: row %d: fault %v, %d bytes of %d, or others", name, row, record.Fault, len(got), len(want))
			}
		}
		reader.Close()
	}
}

// A page that unpacks to more than its header says takes no more memory than that.
func TestPagesThatUnpackToMore(t *testing.T) {
	const size = 1000
	content := bytes.Repeat([]byte("bomb"), 16<<20)
	huge := binary.AppendUvarint(nil, math.MaxUint32) // the length that Snappy begins with
	for name, c := range map[string]struct {
		codec  format.CompressionCodec
		packed func() ([]byte, error)
	}{
		"snappy":             {format.Snappy, func() ([]byte, error) { return parquet.Snappy.Encode(nil, content) }},
		"snappy, of 4 GiB":   {format.Snappy, func() ([]byte, error) { return huge, nil }},
		"gzip":               {format.Gzip, func() ([]byte, error) { return parquet.Gzip.Encode(nil, content) }},
		"brotli":             {format.Brotli, func() ([]byte, error) { return parquet.Brotli.Encode(nil, content) }},
		"lz4":                {format.Lz4Raw, func() ([]byte, error) { return parquet.Lz4Raw.Encode(nil, content) }},
		"zstd":               {format.Zstd, func() ([]byte, error) { return parquet.Zstd.Encode(nil, content) }},
		"zstd, without size": {format.Zstd, func() ([]byte, error) { return zstdStream(content) }},
	} {
		packed, err := c.packed()
		if err != nil {
			t.Fatal(err)
		}
		to := make([]byte, size+1)
		unpackBlock(c.codec, to, packed, size) // what is made once and kept
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := unpackBlock(c.codec, to, packed, size)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; err == nil || taken > 8<<20 {
			t.Errorf("%s: %d bytes, %v, %d KiB taken", name, len(got), err, taken>>10)
		}
	}
}

// zstdStream packs without saying how long it is.
func zstdStream(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	return packed.Bytes(), err
}

// What is packed cannot fill the disk.
func TestSpoolIsBounded(t *testing.T) {
	s, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if most, err := s.bound(); err != nil || most <= 0 {
		t.Fatal(most, err)
	}
	for size, want := range map[int64]string{1 << 20: "", 1<<20 + 1: "more than 1 MiB, half of what is free"} {
		if err := s.reset(); err != nil {
			t.Fatal(err)
		}
		err := s.fill(io.LimitReader(endless(strings.Repeat("x", 4096)), size), 1<<20)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	// What is no Parquet is refused before it is unpacked.
	bomb := gzipped(t, bytes.Repeat([]byte{0}, 1<<20))
	f := stream(Parquet, normalize.KindAgent, append(bomb, "and then not gzip"...))
	if _, err := f.From(Position{}); err == nil || !strings.Contains(err.Error(), "it begins with") {
		t.Error(err)
	}
}
