package normalize

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	errRecordField = &Error{"record", "must be agent, run or attribution"}
	errNoRecord    = &Error{"record", "is required: agent, run or attribution"}
	errNoObject    = &Error{"", "must be a JSON object"}
)

// ReadJSON reads one record written as a JSON object into raw. Unknown and repeated fields, wrong
// types, data after the object and invalid UTF-8 are errors (contract 3). A line of a rejects file
// is read as the record in it, so that such a file can be fixed and ingested. The error is
// an *Error. The values point into line where nothing is escaped.
func ReadJSON(line []byte, raw *Raw) error {
	if scan(line, raw) {
		return nil
	}
	*raw = Raw{}
	if fault := readStrictly(line, raw, false); fault != nil {
		return fault
	}
	return nil
}

// ReadKnownJSON is ReadJSON for records with more fields than their kind has: those are left out, whatever they
// contain.
func ReadKnownJSON(line []byte, raw *Raw) error {
	if scan(line, raw) {
		return nil
	}
	*raw = Raw{}
	if fault := readStrictly(line, raw, true); fault != nil {
		return fault
	}
	return nil
}

// A member is a name of a JSON object and its value.
type member struct {
	name  string
	value jsontext.Value
}

// readStrictly reads what scan leaves: unusual notations, and everything that is wrong.
func readStrictly(line []byte, raw *Raw, ignoreUnknown bool) *Error {
	var members []member
	for text := line; text != nil; { // who feeds back a rejects file that still has faults gets rejects of rejects
		var dialect *CSV
		var fault *Error
		if members, fault = readObject(text); fault != nil {
			return fault
		}
		if text, dialect, fault = rejected(members); fault != nil {
			return fault
		}
		if dialect != nil {
			return dialect.Read(text, raw)
		}
	}
	kind := jsontext.Value(nil)
	for _, m := range members {
		if m.name == "record" {
			kind = m.value
		}
	}
	if kind == nil || kind.Kind() == 'n' {
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
	for _, m := range members {
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

// readObject reads one JSON object and nothing after it.
func readObject(text []byte) ([]member, *Error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	if decoder.PeekKind() != '{' {
		if _, err := decoder.ReadValue(); err != nil {
			return nil, syntaxError(err)
		}
		return nil, errNoObject
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, syntaxError(err)
	}
	var members []member
	for decoder.PeekKind() != '}' {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, syntaxError(err)
		}
		m := member{name: name.String()}
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, syntaxError(err)
		}
		m.value = value.Clone()
		members = append(members, m)
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, syntaxError(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, &Error{"", "is not valid JSON: there is data after the object"}
	}
	return members, nil
}

// rejected returns the record in a line of a rejects file, or nil for any other line. Such a
// line is known by its member "error", which no record has; text that was no JSON is there as a
// string, and if it is CSV, "csv" says how to read it.
func rejected(members []member) (inner []byte, dialect *CSV, fault *Error) {
	var record, how jsontext.Value
	isReject := false
	for _, m := range members {
		switch m.name {
		case "error":
			isReject = true
		case "record":
			record = m.value
		case "csv":
			how = m.value
		}
	}
	if !isReject || record == nil {
		return nil, nil, nil
	}
	if record.Kind() != '"' {
		return record, nil, nil
	}
	if inner, fault = readText("record", record); fault != nil {
		return nil, nil, fault
	}
	if Fields(Kind(inner)) != nil { // a record of that kind with an unknown field "error"
		return nil, nil, nil
	}
	if how != nil {
		if err := json.Unmarshal(how, &dialect); err != nil || dialect == nil {
			return nil, nil, &Error{"csv", "must be what a rejects file says of CSV"}
		}
		return inner, dialect, nil
	}
	return inner, nil, nil
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
		return nil, &Error{field, "must be a string or, where the field allows it, null"}
	}
}

// syntaxError puts the library's reason in words for whoever wrote the record.
func syntaxError(err error) *Error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{syntactic.JSONPointer.LastToken(), "is given twice"}
	case errors.As(err, &syntactic):
		return &Error{"", "is not valid JSON: " + strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")}
	default:
		return &Error{"", "is not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")}
	}
}
