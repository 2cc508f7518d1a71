package source

import (
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go"
)

// runs decodes numbers in the encoding RLE: runs of equal ones, and groups of eight.
type runs struct {
	in    cursor
	width uint  // bits of a number, up to 32
	left  int64 // numbers of the run
	equal bool
	value uint64 // of a run of equal numbers
	bits  bits
}

func (r *runs) next() (uint64, error) {
	for r.left == 0 {
		if err := r.begin(); err != nil {
			return 0, err
		}
	}
	r.left--
	if r.equal {
		return r.value, nil
	}
	return r.bits.next(&r.in, r.width)
}

func (r *runs) begin() error {
	head, err := r.in.uvarint()
	if err != nil {
		return err
	}
	if head>>1 > math.MaxInt32 {
		return fmt.Errorf("a run of %d numbers: %w", head>>1, parquet.ErrCorrupted)
	}
	r.bits = bits{}
	if r.left, r.equal = int64(head>>1), head&1 == 0; !r.equal {
		r.left *= 8
		return nil
	}
	bytes, err := r.in.next(int(r.width+7) / 8)
	if err != nil {
		return err
	}
	r.value = 0
	for i, b := range bytes {
		r.value |= uint64(b) << (8 * i)
	}
	return nil
}

// deltas decodes numbers in the encoding DELTA_BINARY_PACKED: differences to the one before, in blocks.
type deltas struct {
	in      cursor
	perMini int    // numbers of a part of a block
	widths  []byte // of the parts of the block, in bits
	mini    int    // the part, its position in widths
	inMini  int    // numbers of it that are left
	left    uint64 // numbers
	begun   bool   // the first one has been read
	value   int64
	least   int64 // of the differences in the block
	bits    bits
}

// The greatest blocks that are read; those of the known writers have 128 to 2,048 numbers in 4 to 8 parts.
const (
	maxBlockNumbers = 1 << 20
	maxBlockParts   = 1 << 10
)

func newDeltas(in cursor) (*deltas, error) {
	d := &deltas{in: in}
	var head [3]uint64
	var err error
	for i := range head {
		if head[i], err = d.in.uvarint(); err != nil {
			return nil, err
		}
	}
	numbers, parts := head[0], head[1]
	if parts == 0 || parts > maxBlockParts || numbers > maxBlockNumbers || numbers%(8*parts) != 0 || numbers == 0 {
		return nil, fmt.Errorf("blocks of %d numbers in %d parts: %w", numbers, parts, parquet.ErrCorrupted)
	}
	d.perMini, d.widths, d.mini, d.left = int(numbers/parts), make([]byte, parts), int(parts)-1, head[2]
	d.value, err = d.in.varint()
	return d, err
}

func (d *deltas) next() (int64, error) {
	if d.left == 0 {
		return 0, fmt.Errorf("fewer numbers than values: %w", parquet.ErrCorrupted)
	}
	d.left--
	if !d.begun {
		d.begun = true
		return d.value, nil
	}
	if d.inMini == 0 {
		if err := d.begin(); err != nil {
			return 0, err
		}
	}
	d.inMini--
	more, err := d.bits.next(&d.in, uint(d.widths[d.mini]))
	d.value += d.least + int64(more)
	return d.value, err
}

// begin goes to the next part.
func (d *deltas) begin() (err error) {
	d.mini++
	d.inMini, d.bits = d.perMini, bits{}
	if d.mini < len(d.widths) {
		return nil
	}
	d.mini = 0
	if d.least, err = d.in.varint(); err != nil {
		return err
	}
	widths, err := d.in.next(len(d.widths))
	if err != nil {
		return err
	}
	for i, width := range widths {
		if width > 64 {
			return fmt.Errorf("numbers of %d bits: %w", width, parquet.ErrCorrupted)
		}
		d.widths[i] = width
	}
	return nil
}

// skipAll goes after the last number, and returns how many bytes are left there.
func (d *deltas) skipAll() (left int64, err error) {
	for numbers := d.left; numbers > 1; { // the first one is in the head
		if err := d.begin(); err != nil {
			return 0, err
		}
		if err := d.in.skip(int64(d.perMini) * int64(d.widths[d.mini]) / 8); err != nil {
			return 0, err
		}
		numbers -= min(numbers-1, uint64(d.perMini))
	}
	return d.in.left(), nil
}
