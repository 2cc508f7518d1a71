package normalize

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	errRecordField = &Error{"record", "must be agent, run or attribution"}
	errNoRecord    = &Error{"record", "is required: agent, run or attribution"}
	errNoObject    = &Error{"", "must be a JSON object; jq -c '.[]' makes one a line of an array"}
)

// ReadJSON reads one record written as a JSON object into raw. Unknown and repeated fields, wrong
// types, data after the object and invalid UTF-8 are errors (contract 3). A line of a rejects file
// is read as the record in it, so that such a file can be fixed and ingested. The error is
// an *Error. The values point into line where nothing is escaped.
func ReadJSON(line []byte, raw *Raw) error { return readJSON(line, raw, false) }

// ReadKnownJSON is ReadJSON for records with more fields than their kind has: those are left out, whatever they
// contain.
func ReadKnownJSON(line []byte, raw *Raw) error { return readJSON(line, raw, true) }

func readJSON(line []byte, raw *Raw, ignoreUnknown bool) error {
	if scan(line, raw) {
		return nil
	}
	*raw = Raw{}
	if fault := readStrictly(line, raw, ignoreUnknown); fault != nil {
		return fault
	}
	return nil
}

// An object is a JSON object.
type object struct {
	members []member
	inner   *object // the value of "record" if it is an object, and no member
}

// A member is a name of an object and its value.
type member struct {
	name  string
	value jsontext.Value
}

// value is that of a name, nil where there is none.
func (o *object) value(name string) jsontext.Value {
	for _, m := range o.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// readStrictly reads what scan leaves: unusual notations, and everything that is wrong.
func readStrictly(line []byte, raw *Raw, ignoreUnknown bool) *Error {
	o, fault := unwrap(line, raw)
	if fault != nil || o == nil {
		return fault
	}
	kind := o.value("record")
	switch {
	case o.inner != nil:
		return notText("record")
	case kind == nil || kind.Kind() == 'n':
		return errNoRecord
	}
	text, fault := readText("record", kind)
	if fault != nil {
		return fault
	}
	raw.Kind = Kind(text)
	if Fields(raw.Kind) == nil {
		return errRecordField
	}
	for _, m := range o.members {
		if m.name == "record" {
			continue
		}
		i := fieldIndex(raw.Kind, m.name)
		if i < 0 {
			if ignoreUnknown {
				continue
			}
			return &Error{m.name, "is no field of this record"}
		}
		if raw.Values[i], fault = readText(m.name, m.value); fault != nil {
			return fault
		}
	}
	return nil
}

// unwrap reads the object of a record. A line of a rejects file is known by its member "error", which no record has;
// the record is inside. Who feeds back a rejects file that still has faults gets rejects of rejects. Text that was no
// JSON is inside as a string, and text of CSV as {"csv": …} (CSV.Reject): unwrap reads it into raw and
// returns no object.
func unwrap(line []byte, raw *Raw) (*object, *Error) {
	o, fault := readObject(line)
	for fault == nil && o.value("error") != nil {
		if o.inner != nil {
			o = o.inner
			if rejected := o.value("csv"); rejected != nil && len(o.members) == 1 && o.inner == nil {
				return nil, readRejected(rejected, raw)
			}
			continue
		}
		record := o.value("record")
		if record == nil {
			break
		}
		if record.Kind() != '"' {
			return nil, errNoObject
		}
		var text []byte
		if text, fault = readText("record", record); fault != nil {
			return nil, fault
		}
		if Fields(Kind(text)) != nil { // a record of that kind with an unknown field "error"
			break
		}
		o, fault = readObject(text)
	}
	return o, fault
}

// readObject reads one JSON object and nothing after it.
func readObject(text []byte) (*object, *Error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	if decoder.PeekKind() != '{' {
		if _, err := decoder.ReadValue(); err != nil {
			return nil, syntaxError(err)
		}
		return nil, errNoObject
	}
	o, err := nextObject(decoder)
	if err != nil {
		return nil, syntaxError(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, &Error{"", "is not valid JSON: there is data after the object"}
	}
	return o, nil
}

// nextObject reads an object and all that are inside as "record", each byte once however deep they are.
func nextObject(decoder *jsontext.Decoder) (*object, error) {
	if _, err := decoder.ReadToken(); err != nil {
		return nil, err
	}
	o := &object{}
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		if name == "record" && decoder.PeekKind() == '{' {
			if o.inner, err = nextObject(decoder); err != nil {
				return nil, err
			}
			continue
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		o.members = append(o.members, member{name, value.Clone()})
	}
	_, err := decoder.ReadToken()
	return o, err
}

// readText is the text of a string, nil of null.
func readText(field string, value jsontext.Value) ([]byte, *Error) {
	switch value.Kind() {
	case 'n':
		return nil, nil
	case '"':
		text, err := jsontext.AppendUnquote([]byte{}, value)
		if err != nil {
			return nil, syntaxError(err)
		}
		return text, nil
	default:
		return nil, notText(field)
	}
}

func notText(field string) *Error {
	return &Error{field, "must be a string or, where the field allows it, null"}
}

// syntaxError puts the library's reason in words for whoever wrote the record.
func syntaxError(err error) *Error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{syntactic.JSONPointer.LastToken(), "is given twice"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{"", "is not valid JSON: it ends within a value; a record is one line"}
	case errors.As(err, &syntactic):
		return &Error{"", "is not valid JSON: " + strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")}
	default:
		return &Error{"", "is not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")}
	}
}
