// Package value has the values of answers. It is pure.
package value

import (
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/daterange"
)

// A Kind is what a value is, or the values of a column are. Cursors have the numbers of the first three.
type Kind uint8

const (
	Null Kind = iota // of a value only
	Text
	Day
	Count
	Ratio
)

// Type is the published type of a column of the kind (spec 2.14).
func (k Kind) Type() string {
	switch k {
	case Text:
		return catalog.TypeString
	case Day:
		return catalog.TypeDate
	}
	return catalog.TypeNumber
}

// A Value is one value of a row. The zero Value is null.
type Value struct {
	Kind   Kind
	Text   string
	Number int64 // a day since 1970-01-01, a count, or a ratio's IEEE 754 bits
}

// Ratio is a value that is one.
func (v Value) Ratio() float64 { return math.Float64frombits(uint64(v.Number)) }

// AppendJSON appends the value as spec 2.14 wants it: a string, a number or null; a day as YYYY-MM-DD.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case Text:
		return appendText(b, v.Text)
	case Day:
		return appendText(b, daterange.Date(v.Number).String())
	case Count:
		return strconv.AppendInt(b, v.Number, 10)
	case Ratio:
		return strconv.AppendFloat(b, v.Ratio(), 'f', -1, 64)
	default:
		return append(b, "null"...)
	}
}

// AppendCSV appends the value as a field of CSV (RFC 4180): what JSON has as a string is quoted, null is nothing.
func (v Value) AppendCSV(b []byte) []byte {
	switch v.Kind {
	case Null:
		return b
	case Text:
		return append(append(append(b, '"'), strings.ReplaceAll(v.Text, `"`, `""`)...), '"')
	default:
		return v.AppendJSON(b) // the same for a number, and for a day, which nothing in quotes has to be escaped of
	}
}

// appendText appends s as a JSON string. Bytes that are no UTF-8, which no record can have
// (contract 3), would become U+FFFD.
func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
