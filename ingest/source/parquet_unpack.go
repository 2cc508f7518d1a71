package source

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// unpacks reports whether the pages of a codec can be unpacked.
func unpacks(codec format.CompressionCodec) bool {
	switch codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.Lz4Raw:
		return true
	default:
		return false
	}
}

// unpackBlock unpacks a page in memory, into to, of size+1 bytes. It returns exactly size bytes, and takes no more
// memory whatever the packed bytes are. (The library's codecs unpack as much as comes, and its LZ4_RAW loses what does
// not fit into the memory that it is given.)
func unpackBlock(codec format.CompressionCodec, to, packed []byte, size int64) (unpacked []byte, err error) {
	switch codec {
	case format.Snappy:
		var length int
		if length, err = snappy.DecodedLen(packed); err == nil && int64(length) != size {
			return nil, wrongLength(codec, int64(length), size)
		}
		if err == nil {
			unpacked, err = snappy.Decode(to, packed)
		}
	case format.Lz4Raw:
		var n int
		n, err = lz4.UncompressBlock(packed, to)
		unpacked = to[:max(n, 0)]
	case format.Zstd:
		var decoder *zstd.Decoder
		if decoder, err = zstdBlocks(); err == nil {
			unpacked, err = decoder.DecodeAll(packed, to[:0:size+1])
		}
	case format.Gzip:
		reader := gzips.Get().(*gzip.Reader)
		defer gzips.Put(reader)
		if err = reader.Reset(bytes.NewReader(packed)); err == nil {
			unpacked, err = readBlock(reader, to)
		}
	case format.Brotli:
		reader := brotlis.Get().(*brotli.Reader)
		defer brotlis.Put(reader)
		if err = reader.Reset(bytes.NewReader(packed)); err == nil {
			unpacked, err = readBlock(reader, to)
		}
	default:
		err = parquet.ErrCorrupted
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("a page that is compressed with %s: %w", codec, err)
	case int64(len(unpacked)) != size:
		return nil, wrongLength(codec, int64(len(unpacked)), size)
	}
	return unpacked, nil
}

var (
	// zstdBlocks returns a decoder that any number of pages are unpacked with, and that keeps to the memory it is given.
	zstdBlocks = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true))
	})
	gzips   = sync.Pool{New: func() any { return new(gzip.Reader) }}
	brotlis = sync.Pool{New: func() any { return brotli.NewReader(nil) }}
)

// readBlock reads all that there is, or as much as fits.
func readBlock(in io.Reader, to []byte) ([]byte, error) {
	for n := 0; n < len(to); {
		more, err := in.Read(to[n:])
		n += more
		if errors.Is(err, io.EOF) {
			return to[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
	return to, nil
}

// unpack puts a page into the file, in memory that does not grow with it.
func (s *spool) unpack(codec format.CompressionCodec, packed io.Reader, size int64) error {
	if err := s.reset(); err != nil {
		return err
	}
	to := &limited{s, codec, size}
	err := unpackStream(codec, to, s, bufio.NewReaderSize(packed, 64<<10))
	switch {
	case err != nil && (errors.Is(err, errSpool) || errors.Is(err, parquet.ErrCorrupted)):
		return err
	case err != nil:
		return fmt.Errorf("a page that is compressed with %s: %w", codec, err)
	case to.left > 0:
		return wrongLength(codec, size-to.left, size)
	}
	return nil
}

// A limited writer refuses more than it was to get.
type limited struct {
	io.Writer
	codec format.CompressionCodec
	left  int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, fmt.Errorf("a page that is compressed with %s is longer than its header says: %w",
			l.codec, parquet.ErrCorrupted)
	}
	return l.Writer.Write(p)
}

// unpackStream unpacks from in to out; what it wrote can be read back from written.
func unpackStream(codec format.CompressionCodec, out io.Writer, written io.ReaderAt, in *bufio.Reader) error {
	var plain io.Reader
	var err error
	switch codec {
	case format.Snappy:
		return unpackSnappy(&matches{out: out, written: written}, in)
	case format.Lz4Raw:
		return unpackLZ4(&matches{out: out, written: written}, in)
	case format.Gzip:
		plain, err = gzip.NewReader(in)
	case format.Brotli:
		plain = brotli.NewReader(in)
	case format.Zstd:
		var decoder *zstd.Decoder
		decoder, err = zstd.NewReader(narrowed(in), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(pageWindow))
		if err == nil {
			defer decoder.Close()
			plain = decoder
		}
	default:
		return fmt.Errorf("%s: %w", codec, parquet.ErrCorrupted)
	}
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{plain}, make([]byte, 64<<10))
	return err
}

// pageWindow is how far back the matches of a large ZSTD page may lie. Those of the levels up to 20 do not lie further.
const pageWindow = 32 << 20

// narrowed returns a ZSTD page whose frame does not ask for a window as long as the page, as it does if the writer
// packed the page at once. Matches that lie further back than pageWindow are an error of the decoder.
func narrowed(in *bufio.Reader) io.Reader {
	head, _ := in.Peek(5) // magic and descriptor
	if len(head) < 5 || !bytes.HasPrefix(head, zstdMagic) {
		return in
	}
	const single, sizeShift, sizeOf8 = 1 << 5, 6, 3
	descriptor := head[4]
	if descriptor&single == 0 || descriptor>>sizeShift < 2 { // shorter than 64 KiB and 256 bytes
		return in
	}
	idBytes := []int{0, 1, 2, 4}[descriptor&3]
	sizeBytes := 4
	if descriptor>>sizeShift == sizeOf8 {
		sizeBytes = 8
	}
	head, err := in.Peek(5 + idBytes + sizeBytes)
	if err != nil {
		return in
	}
	size := make([]byte, 8)
	copy(size, head[5+idBytes:])
	if binary.LittleEndian.Uint64(size) <= pageWindow {
		return in
	}
	const windowBits = 25 // of pageWindow
	header := append(append([]byte(nil), zstdMagic...), descriptor&^single, (windowBits-10)<<3)
	header = append(header, head[5:]...)
	_, _ = in.Discard(len(head)) // they have been peeked
	return io.MultiReader(bytes.NewReader(header), in)
}
