package exec

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/daterange"
)

// A Value is one value of a row: null, a text, a day, a count or a ratio. The zero Value is null.
type Value struct {
	kind kind
	text string
	bits uint64 // a day as int64, a count, or a ratio's IEEE 754 bits
}

type kind uint8

const (
	null kind = iota
	text
	day
	count
	ratio
)

// AppendJSON appends the value as spec 2.14 wants it: a string, a number or null; a day as YYYY-MM-DD.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.kind {
	case text:
		return AppendText(b, v.text)
	case day:
		return AppendText(b, daterange.Date(v.bits).String())
	case count:
		return strconv.AppendUint(b, v.bits, 10)
	case ratio:
		return strconv.AppendFloat(b, math.Float64frombits(v.bits), 'f', -1, 64)
	default:
		return append(b, "null"...)
	}
}

// TextLen is the length of a text in bytes; 0 of any other.
func (v Value) TextLen() int { return len(v.text) }

// Key is the value as a cursor keeps it. Only dimensions have keys: null, text or day.
func (v Value) Key() cursor.Value {
	switch v.kind {
	case text:
		return cursor.Value{Kind: cursor.Text, Text: v.text}
	case day:
		return cursor.Value{Kind: cursor.Day, Day: int64(v.bits)}
	default:
		return cursor.Value{Kind: cursor.Null}
	}
}

// Count is the value of a count; 0 of any other.
func (v Value) Count() uint64 {
	if v.kind != count {
		return 0
	}
	return v.bits
}

// AppendText appends s as a JSON string. Bytes that are no UTF-8, which no record can have
// (contract 3), would become U+FFFD.
func AppendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
