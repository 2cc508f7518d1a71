package source

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// cursorBytes is how much of a page that is not in memory is read at a time.
const cursorBytes = 16 << 10

// A body is the bytes of a page as they are unpacked: in memory, or a part of a file.
type body struct {
	memory []byte
	file   io.ReaderAt // nil for memory
	begin  int64       // in file
	size   int64
}

// cursor returns a cursor of a part of the body, whose bounds must lie in it.
func (b body) cursor(from, to int64) cursor {
	if b.file == nil {
		return cursor{unread: b.memory[from:to]}
	}
	return cursor{file: b.file, at: b.begin + from, end: b.begin + to}
}

// A cursor reads bytes in order, through a buffer of its own where they are in a file.
type cursor struct {
	file    io.ReaderAt
	at, end int64  // what is left of the file: at inclusive, end exclusive
	unread  []byte // before that
	buffer  []byte
}

func (c *cursor) left() int64 { return int64(len(c.unread)) + c.end - c.at }

// next returns the next n bytes, which are valid until the next call.
func (c *cursor) next(n int) ([]byte, error) {
	if n > len(c.unread) {
		if n < 0 || int64(n) > c.left() {
			return nil, fmt.Errorf("%d bytes where %d are left: %w", n, c.left(), parquet.ErrCorrupted)
		}
		size := min(int64(max(n, cursorBytes)), c.left())
		if int64(cap(c.buffer)) < size {
			c.buffer = append(make([]byte, 0, size), c.unread...)
		} else {
			copy(c.buffer[:size], c.unread)
		}
		more := c.buffer[len(c.unread):size]
		if _, err := c.file.ReadAt(more, c.at); err != nil {
			return nil, err
		}
		c.at += int64(len(more))
		c.unread = c.buffer[:size]
	}
	bytes := c.unread[:n:n]
	c.unread = c.unread[n:]
	return bytes, nil
}

func (c *cursor) skip(n int64) error {
	if n < 0 || n > c.left() {
		return fmt.Errorf("%d bytes where %d are left: %w", n, c.left(), parquet.ErrCorrupted)
	}
	inMemory := min(n, int64(len(c.unread)))
	c.unread = c.unread[inMemory:]
	c.at += n - inMemory
	return nil
}

// text returns the next n bytes. Of more than MaxLineBytes it returns the beginning, and ErrTooLong.
func (c *cursor) text(n uint64) ([]byte, error) {
	if n <= MaxLineBytes {
		return c.next(int(n))
	}
	if n > uint64(c.left()) {
		return nil, fmt.Errorf("a text of %d bytes where %d are left: %w", n, c.left(), parquet.ErrCorrupted)
	}
	kept, err := c.next(keptBytes)
	if err == nil {
		err = c.skip(int64(n) - keptBytes)
	}
	if err != nil {
		return nil, err
	}
	return kept, ErrTooLong
}

func (c *cursor) uint32() (uint32, error) {
	bytes, err := c.next(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(bytes), nil
}

// uvarint reads a number of 7 bits a byte.
func (c *cursor) uvarint() (n uint64, err error) {
	for shift := 0; shift < 64; shift += 7 {
		b, err := c.next(1)
		if err != nil {
			return 0, err
		}
		n |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("a number of too many bytes: %w", parquet.ErrCorrupted)
}

// varint reads a number whose lowest bit is its sign.
func (c *cursor) varint() (int64, error) {
	n, err := c.uvarint()
	return int64(n>>1) ^ -int64(n&1), err
}

// bits reads numbers of any number of bits up to 64, the lowest first.
type bits struct {
	rest uint64
	have uint // bits of rest, less than 8
}

func (b *bits) next(in *cursor, width uint) (uint64, error) {
	value, got := b.rest, b.have
	var last byte
	for got < width {
		more, err := in.next(1)
		if err != nil {
			return 0, err
		}
		last = more[0]
		value |= uint64(last) << got
		got += 8
	}
	if width > b.have {
		b.have = got - width
		b.rest = uint64(last) >> (8 - b.have)
	} else {
		b.rest >>= width
		b.have -= width
	}
	if width < 64 {
		value &= 1<<width - 1
	}
	return value, nil
}
