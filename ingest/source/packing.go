package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	// skipMagic begins a frame of zstd without data, but for the lower half of its first byte.
	skipMagic    = []byte{0x50, 0x2a, 0x4d, 0x18}
	parquetMagic = []byte("PAR1")
)

// packings are the first bytes of what is not unpacked.
var packings = []struct{ magic, name string }{
	{"\xfd7zXZ\x00", "xz"},
	{"\x04\x22\x4d\x18", "lz4"},
	{"\x02\x21\x4c\x18", "lz4 (of the old form)"},
	{"BZh", "bzip2"},
	{"PK\x03\x04", "zip"},
	{"PK\x05\x06", "zip"},
	{"7z\xbc\xaf\x27\x1c", "7z"},
	{"\x1f\x9d", "compress (.Z)"},
	{"\x5d\x00\x00", "lzma"},
	{"LZIP\x01", "lzip"},
	{"\x89LZO\x00", "lzop"},
	{"\xff\x06\x00\x00sNaPpY", "snappy"},
	{"Rar!\x1a\x07", "rar"},
}

// maxWindow is how far back zstd may refer. Its levels up to 22 do not refer further; --long may.
const maxWindow = 128 << 20

// headBytes is how much of a file shows what it is.
const headBytes = 16

// unpack finds by the first bytes, and not by the name, how a file is compressed, so that a
// stream without a name is read as well. Another compression than gzip and zstd is an error that names it, and so is
// what is no text where a text is wanted.
func (f *File) unpack(in io.Reader) (plain io.Reader, isPlain bool, err error) {
	buffered := bufio.NewReaderSize(f.count(in), BufferBytes)
	head, err := peek(buffered)
	if err != nil {
		return nil, false, err
	}
	var unpacked io.Reader
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		unpacked, err = newMembers(buffered)
	case isZstd(head):
		unpacked, err = zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	default:
		return buffered, true, f.refuse(head)
	}
	if err != nil {
		return nil, false, explained(err)
	}
	unpacked = explaining{unpacked}
	if f.Format == Parquet {
		return unpacked, false, nil
	}
	inner := bufio.NewReader(unpacked)
	if head, err = peek(inner); err != nil {
		return nil, false, err
	}
	if bytes.HasPrefix(head, gzipMagic) || isZstd(head) {
		return nil, false, errors.New("is packed twice; unpack it once before")
	}
	return inner, false, f.refuse(head)
}

// explaining says of what was packed why it cannot be unpacked, where the decoder's error says less.
type explaining struct{ io.Reader }

func (e explaining) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	return n, explained(err)
}

func explained(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("what is packed is cut off: %w", err)
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("zstd packed it with a window of more than %d MiB; unpack it before: %w", maxWindow>>20, err)
	default:
		return err
	}
}

func peek(in *bufio.Reader) ([]byte, error) {
	head, err := in.Peek(headBytes)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, err
}

func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, zstdMagic) ||
		len(head) > 3 && head[0]&0xf0 == skipMagic[0] && bytes.Equal(head[1:4], skipMagic[1:])
}

// refuse names what a file is that cannot be read.
func (f *File) refuse(head []byte) error {
	for _, p := range packings {
		if bytes.HasPrefix(head, []byte(p.magic)) && (p.name != "bzip2" || isBzip2(head)) {
			return fmt.Errorf("is packed with %s; only gzip and zstd are unpacked here, so unpack it before", p.name)
		}
	}
	if f.Format == Parquet {
		return nil
	}
	switch {
	case bytes.HasPrefix(head, parquetMagic):
		return errors.New("is a Parquet file; say --format parquet")
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")), isWide(head):
		return errors.New("is no UTF-8 text but, it seems, UTF-16 or UTF-32; " +
			"convert it before, such as with iconv -f UTF-16 -t UTF-8")
	}
	return nil
}

// isWide reports whether every other byte is zero, as in UTF-16 without a mark.
func isWide(head []byte) bool {
	return len(head) > 3 && (head[0] == 0 && head[2] == 0 || head[1] == 0 && head[3] == 0)
}

// isBzip2 also reads the level and the first block, since CSV might begin with "BZh".
func isBzip2(head []byte) bool {
	const block, none = "1AY&SY", "\x17\x72\x45\x38\x50\x90"
	return len(head) >= 10 && '1' <= head[3] && head[3] <= '9' &&
		(string(head[4:10]) == block || string(head[4:10]) == none)
}

// members unpacks the members of a gzip file one after another. Zeros after a member, with which tapes and tar pad
// files, are left out.
type members struct {
	in     *bufio.Reader
	member *gzip.Reader
}

func newMembers(in *bufio.Reader) (*members, error) {
	member, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	member.Multistream(false)
	return &members{in, member}, nil
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.member.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		for {
			head, err := m.in.Peek(1)
			if err != nil {
				return 0, err
			}
			if head[0] != 0 {
				break
			}
			_, _ = m.in.Discard(1) // it has been peeked
		}
		if err := m.member.Reset(m.in); err != nil {
			return 0, err
		}
		m.member.Multistream(false)
	}
}
