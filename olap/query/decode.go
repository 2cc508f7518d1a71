package query

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CheckSyntax reports whether body is one well-formed JSON value in valid UTF-8 with nothing after it. This much is
// judged before authentication (spec 5.2, contract 4.18); the rest is Parse's. The error is an *Error.
func CheckSyntax(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	if err := d.SkipValue(); err != nil {
		return invalid("", "malformed JSON: "+err.Error())
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return invalid("", "data after the JSON value")
	}
	return nil
}

// A node is a JSON value and its place in the request, such as filters[1].value.
type node struct {
	place string
	value jsontext.Value
}

// object reads a JSON object with the given properties only, each at most once. Names in required
// must be there.
func (n node) object(required []string, optional ...string) (map[string]node, error) {
	if n.value.Kind() != '{' {
		return nil, invalid(n.place, "must be an object")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(n.value), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, invalid(n.place, err.Error())
	}
	properties := make(map[string]node)
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, invalid(n.place, err.Error())
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, invalid(n.place, err.Error())
		}
		switch _, repeated := properties[name]; {
		case utf8.RuneCountInString(name) > MaxNameLength:
			return nil, invalid(n.place, "has an unknown property")
		case !slices.Contains(required, name) && !slices.Contains(optional, name):
			return nil, invalid(n.at(name), "is no known property")
		case repeated:
			return nil, invalid(n.at(name), "is a repeat")
		}
		properties[name] = node{n.at(name), value.Clone()}
	}
	for _, name := range required {
		if _, ok := properties[name]; !ok {
			return nil, invalid(n.at(name), "is required")
		}
	}
	return properties, nil
}

func (n node) at(property string) string {
	if n.place == "" {
		return property
	}
	return n.place + "." + property
}

// list reads a JSON array of least to most elements, both inclusive.
func (n node) list(least, most int) ([]node, error) {
	if n.value.Kind() != '[' {
		return nil, invalid(n.place, "must be an array")
	}
	var elements []jsontext.Value
	if err := json.Unmarshal(n.value, &elements, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, invalid(n.place, err.Error())
	}
	if len(elements) < least || len(elements) > most {
		return nil, invalid(n.place, fmt.Sprintf("must have %d to %d elements", least, most))
	}
	nodes := make([]node, len(elements))
	for i, value := range elements {
		nodes[i] = node{fmt.Sprintf("%s[%d]", n.place, i), value}
	}
	return nodes, nil
}

// text reads a JSON string of 1 to most code points, both inclusive.
func (n node) text(most int) (string, error) {
	if n.value.Kind() != '"' {
		return "", invalid(n.place, "must be a string")
	}
	var s string
	if err := json.Unmarshal(n.value, &s); err != nil {
		return "", invalid(n.place, err.Error())
	}
	if length := utf8.RuneCountInString(s); length < 1 || length > most {
		return "", invalid(n.place, fmt.Sprintf("must have 1 to %d characters", most))
	}
	return s, nil
}

// texts reads a JSON array of least to most strings, all bounds inclusive.
func (n node) texts(least, most, length int) ([]string, []node, error) {
	elements, err := n.list(least, most)
	if err != nil {
		return nil, nil, err
	}
	texts := make([]string, len(elements))
	for i, element := range elements {
		if texts[i], err = element.text(length); err != nil {
			return nil, nil, err
		}
	}
	return texts, elements, nil
}

// uniqueTexts is texts without repeats (spec 2.10).
func (n node) uniqueTexts(least, most, length int) ([]string, error) {
	texts, elements, err := n.texts(least, most, length)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(texts))
	for i, text := range texts {
		if seen[text] {
			return nil, invalid(elements[i].place, "is a repeat")
		}
		seen[text] = true
	}
	return texts, nil
}

// integer reads a JSON number from least to most, both inclusive, that is written with digits
// only: 100, not 1e2 or 100.0 (contract 4.10).
func (n node) integer(least, most int) (int, error) {
	i, err := strconv.Atoi(string(n.value))
	if n.value.Kind() != '0' || err != nil || i < least || i > most {
		return 0, invalid(n.place, fmt.Sprintf("must be a whole number from %d to %d", least, most))
	}
	return i, nil
}
