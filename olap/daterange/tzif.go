package daterange

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"sort"
)

// A wallClock says how far a zone's wall clock leads UTC at every instant. It reads the tz data itself, because Go's
// time.Time.ZoneBounds returns an end at or before its instant on the last day of some years.
type wallClock struct {
	first   int64        // seconds ahead of UTC before the first transition
	changes []transition // in the order of time; each has another offset than the one before it
	rule    *yearlyRule  // what is valid from the last transition on; nil where the last offset stays for ever
}

// A transition is an instant from which on (inclusive) a wall clock has another offset.
type transition struct {
	at     int64 // seconds since 1970-01-01 UTC
	offset int64 // seconds ahead of UTC
}

// never is the end of an offset that stays for ever.
const never = math.MaxInt64

// offsetAt returns the offset at an instant, in seconds ahead of UTC, and the instant from which on it may be
// another one (exclusive). Instants are seconds since 1970-01-01 UTC. until is always greater than at, so a
// loop that goes on at until ends.
func (c *wallClock) offsetAt(at int64) (offset, until int64) {
	// Index of the first transition after the instant.
	next := sort.Search(len(c.changes), func(i int) bool { return c.changes[i].at > at })
	offset = c.first
	if next > 0 {
		offset = c.changes[next-1].offset
	}
	switch {
	case next < len(c.changes):
		return offset, c.changes[next].at
	case c.rule != nil:
		return c.rule.offsetAt(at)
	default:
		return offset, never
	}
}

var errTZif = errors.New("not a TZif file of version 2 or later")

const (
	tzifHeader   = 44 // bytes: magic, version, 15 bytes reserved, six counts
	timeTypeSize = 6  // bytes: offset, daylight saving, abbreviation
)

// readTZif reads a file of the tz database (RFC 9636). It needs the block with 64-bit times and the footer,
// which every file has since version 2.
func readTZif(data []byte) (*wallClock, error) {
	// The block of version 1 comes first, with times of 4 bytes. It ends in 1901 and 2037 and is skipped.
	_, rest, err := tzifBlock(data, 4)
	if err != nil {
		return nil, err
	}
	block, footer, err := tzifBlock(rest, 8)
	if err != nil {
		return nil, err
	}
	if len(block.types) == 0 {
		return nil, errTZif
	}
	clock := &wallClock{first: block.offset(0)}
	last := clock.first
	for i, typ := range block.typeOf {
		if int(typ) >= len(block.types)/timeTypeSize {
			return nil, errTZif
		}
		change := transition{int64(binary.BigEndian.Uint64(block.times[8*i:])), block.offset(int(typ))}
		if i > 0 && change.at <= int64(binary.BigEndian.Uint64(block.times[8*(i-1):])) {
			return nil, errTZif
		}
		// Many transitions change only the name of the time, or whether it counts as summer time.
		if change.offset != last {
			clock.changes = append(clock.changes, change)
			last = change.offset
		}
	}
	footer, ok := bytes.CutPrefix(footer, []byte("\n"))
	footer, ended := bytes.CutSuffix(footer, []byte("\n"))
	if !ok || !ended {
		return nil, errTZif
	}
	fixed, rule, err := parseFooter(string(footer))
	if err != nil {
		return nil, err
	}
	if rule == nil && fixed != last {
		return nil, errors.New("the footer and the last transition differ")
	}
	clock.rule = rule
	return clock, nil
}

// A dataBlock is the transitions of a TZif file, as they are in it.
type dataBlock struct{ times, typeOf, types []byte }

func (b dataBlock) offset(typ int) int64 {
	return int64(int32(binary.BigEndian.Uint32(b.types[typ*timeTypeSize:])))
}

// tzifBlock cuts the first header and its block, with times of timeSize bytes, off the data.
func tzifBlock(data []byte, timeSize int) (block dataBlock, rest []byte, err error) {
	if len(data) < tzifHeader || string(data[:4]) != "TZif" || data[4] < '2' {
		return dataBlock{}, nil, errTZif
	}
	count := func(i int) int { return int(binary.BigEndian.Uint32(data[20+4*i:])) }
	isUT, isStd, leaps, times, types, chars := count(0), count(1), count(2), count(3), count(4), count(5)
	rest = data[tzifHeader:]
	cut := func(size int) (part []byte) {
		if err != nil || size > len(rest) {
			err = errTZif
			return nil
		}
		part, rest = rest[:size], rest[size:]
		return part
	}
	block.times, block.typeOf, block.types = cut(times*timeSize), cut(times), cut(types*timeTypeSize)
	cut(chars + leaps*(timeSize+4) + isStd + isUT)
	return block, rest, err
}
