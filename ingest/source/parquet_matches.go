package source

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

const (
	// matchBytes is how far back what was unpacked is in memory, at least.
	matchBytes = 64 << 10
	// matchBuffer is how much of it is written at a time.
	matchBuffer = 256 << 10
)

// matches unpacks blocks of literal bytes and of copies of what was unpacked before. Copies from further back than
// matchBytes, which few packers make, are read back from the file.
type matches struct {
	out     io.Writer
	written io.ReaderAt
	recent  []byte // the last bytes
	flushed int    // of recent
	before  int64  // bytes before recent, all of them written
}

// room returns the part of recent where up to n more bytes go.
func (m *matches) room(n int64) ([]byte, error) {
	if cap(m.recent) == 0 {
		m.recent = make([]byte, 0, matchBytes+matchBuffer)
	}
	if len(m.recent) == cap(m.recent) {
		if err := m.flush(); err != nil {
			return nil, err
		}
		gone := len(m.recent) - matchBytes
		m.before += int64(gone)
		m.recent = m.recent[:copy(m.recent, m.recent[gone:])]
		m.flushed = len(m.recent)
	}
	begin := len(m.recent)
	m.recent = m.recent[:begin+int(min(n, int64(cap(m.recent)-begin)))]
	return m.recent[begin:], nil
}

func (m *matches) flush() error {
	_, err := m.out.Write(m.recent[m.flushed:])
	m.flushed = len(m.recent)
	return err
}

// literal copies n bytes of the input.
func (m *matches) literal(in io.Reader, n int64) error {
	for n > 0 {
		to, err := m.room(n)
		if err != nil {
			return err
		}
		if _, err := io.ReadFull(in, to); err != nil {
			return cutOff(err)
		}
		n -= int64(len(to))
	}
	return nil
}

// copy copies n bytes from so far back; it may copy what it has just copied.
func (m *matches) copy(back, n int64) error {
	if back <= 0 || back > m.before+int64(len(m.recent)) {
		return fmt.Errorf("a copy from before the page: %w", parquet.ErrCorrupted)
	}
	for n > 0 {
		to, err := m.room(min(n, back))
		if err != nil {
			return err
		}
		end := len(m.recent) - len(to)
		if begin := int64(end) - back; begin >= 0 {
			copy(to, m.recent[begin:])
		} else {
			from := m.before + begin
			to = to[:min(int64(len(to)), m.before-from)]
			m.recent = m.recent[:end+len(to)]
			if _, err := m.written.ReadAt(to, from); err != nil {
				return err
			}
		}
		n -= int64(len(to))
	}
	return nil
}

// cutOff is the error of packed bytes that end too early.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// littleEndian reads a number of up to 8 bytes.
func littleEndian(in io.Reader, bytes int) (int64, error) {
	var number [8]byte
	_, err := io.ReadFull(in, number[:bytes])
	return int64(binary.LittleEndian.Uint64(number[:])), cutOff(err)
}

// unpackSnappy unpacks a block of the format of github.com/google/snappy/blob/main/format_description.txt.
func unpackSnappy(m *matches, in *bufio.Reader) error {
	if _, err := binary.ReadUvarint(in); err != nil { // the length, which the page's header has
		return cutOff(err)
	}
	for {
		tag, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return m.flush()
		}
		if err != nil {
			return err
		}
		length := int64(tag >> 2)
		if tag&3 == 0 {
			if bytes := int(length) - 59; bytes > 0 {
				if length, err = littleEndian(in, bytes); err != nil {
					return err
				}
			}
			if err := m.literal(in, length+1); err != nil {
				return err
			}
			continue
		}
		back, err := littleEndian(in, []int{1: 1, 2: 2, 3: 4}[tag&3])
		if err != nil {
			return err
		}
		if tag&3 == 1 {
			back |= int64(tag>>5) << 8
			length = length&7 + 3
		}
		if err := m.copy(back, length+1); err != nil {
			return err
		}
	}
}

// unpackLZ4 unpacks a block of the format of github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md.
func unpackLZ4(m *matches, in *bufio.Reader) error {
	for {
		token, err := in.ReadByte()
		if err != nil {
			return cutOff(err)
		}
		length, err := lengthLZ4(in, int64(token>>4))
		if err != nil {
			return err
		}
		if err := m.literal(in, length); err != nil {
			return err
		}
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return m.flush()
		}
		back, err := littleEndian(in, 2)
		if err != nil {
			return err
		}
		if length, err = lengthLZ4(in, int64(token&15)); err != nil {
			return err
		}
		if err := m.copy(back, length+4); err != nil {
			return err
		}
	}
}

// lengthLZ4 is a length of which a token has the first 4 bits.
func lengthLZ4(in *bufio.Reader, length int64) (int64, error) {
	if length < 15 {
		return length, nil
	}
	for {
		more, err := in.ReadByte()
		if err != nil {
			return 0, cutOff(err)
		}
		if length += int64(more); more < 255 {
			return length, nil
		}
	}
}
