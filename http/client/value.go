package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// A Value is a string, a number or null. A number keeps the digits that the server wrote, so no precision is lost.
// The zero Value is null.
type Value struct {
	text string
	kind valueKind
}

type valueKind uint8

const (
	kindNull valueKind = iota
	kindString
	kindNumber
)

// StringValue is a Value that holds text.
func StringValue(text string) Value { return Value{text, kindString} }

// Int64Value is a Value that holds a whole number.
func Int64Value(n int64) Value { return Value{strconv.FormatInt(n, 10), kindNumber} }

// Float64Value is a Value that holds a finite number.
func Float64Value(f float64) Value { return Value{strconv.FormatFloat(f, 'g', -1, 64), kindNumber} }

// IsNull reports whether there is no value.
func (v Value) IsNull() bool { return v.kind == kindNull }

// IsNumber reports whether the value is a number.
func (v Value) IsNumber() bool { return v.kind == kindNumber }

// String is the text, the digits of a number as the server wrote them, or empty for null.
func (v Value) String() string { return v.text }

// Int64 is a whole number, exactly; ok is false for anything else.
func (v Value) Int64() (n int64, ok bool) {
	if v.kind != kindNumber {
		return 0, false
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	return n, err == nil
}

// Float64 is the nearest float64 of a number; ok is false for anything else.
func (v Value) Float64() (f float64, ok bool) {
	if v.kind != kindNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(v.text, 64)
	return f, err == nil
}

// MarshalJSON writes the value as the server did.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.kind {
	case kindString:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		err := e.Encode(v.text)
		return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
	case kindNumber:
		return []byte(v.text), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads a JSON string, number or null.
func (v *Value) UnmarshalJSON(data []byte) error {
	switch first := data[0]; {
	case first == 'n':
		*v = Value{}
	case first == '"':
		v.kind = kindString
		return json.Unmarshal(data, &v.text)
	case first == '-' || first >= '0' && first <= '9':
		*v = Value{string(data), kindNumber}
	default:
		return fmt.Errorf("%.20s is no string, number or null", data)
	}
	return nil
}
