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

func (n node) at(property string) string {
	if n.place == "" {
		return property
	}
	return n.place + "." + property
}

// A decoder reads nodes and keeps the first fault. What it returns after one is of no use, and nothing fails.
type decoder struct{ fault error }

func (d *decoder) refuse(place, reason string) {
	if d.fault == nil {
		d.fault = invalid(place, reason)
	}
}

// object reads a JSON object with the given properties only, each at most once. Names in required
// must be there.
func (d *decoder) object(n node, required []string, optional ...string) map[string]node {
	if n.value.Kind() != '{' {
		d.refuse(n.place, "must be an object")
		return nil
	}
	properties := make(map[string]node)
	tokens := jsontext.NewDecoder(bytes.NewBuffer(n.value), jsontext.AllowDuplicateNames(true))
	_, err := tokens.ReadToken()
	for err == nil && d.fault == nil && tokens.PeekKind() == '"' {
		var token jsontext.Token
		if token, err = tokens.ReadToken(); err != nil {
			break
		}
		name := token.String()
		var value jsontext.Value
		if value, err = tokens.ReadValue(); err != nil {
			break
		}
		switch _, repeated := properties[name]; {
		case utf8.RuneCountInString(name) > MaxNameLength:
			d.refuse(n.place, "has an unknown property")
		case !slices.Contains(required, name) && !slices.Contains(optional, name):
			d.refuse(n.at(name), "is no known property")
		case repeated:
			d.refuse(n.at(name), "is a repeat")
		}
		properties[name] = node{n.at(name), value.Clone()}
	}
	if err != nil {
		d.refuse(n.place, err.Error())
	}
	for _, name := range required {
		if _, ok := properties[name]; !ok {
			d.refuse(n.at(name), "is required")
		}
	}
	return properties
}

// list reads a JSON array of least to most elements, both inclusive.
func (d *decoder) list(n node, least, most int) (nodes []node) {
	var elements []jsontext.Value
	if n.value.Kind() != '[' {
		d.refuse(n.place, "must be an array")
	} else if err := json.Unmarshal(n.value, &elements, jsontext.AllowDuplicateNames(true)); err != nil {
		d.refuse(n.place, err.Error())
	} else if len(elements) < least || len(elements) > most {
		d.refuse(n.place, fmt.Sprintf("must have %d to %d elements", least, most))
		return nil
	}
	for i, value := range elements {
		nodes = append(nodes, node{fmt.Sprintf("%s[%d]", n.place, i), value})
	}
	return nodes
}

// text reads a JSON string of 1 to most code points, both inclusive.
func (d *decoder) text(n node, most int) (s string) {
	if n.value.Kind() != '"' {
		d.refuse(n.place, "must be a string")
	} else if err := json.Unmarshal(n.value, &s); err != nil {
		d.refuse(n.place, err.Error())
	} else if length := utf8.RuneCountInString(s); length < 1 || length > most {
		d.refuse(n.place, fmt.Sprintf("must have 1 to %d characters", most))
	}
	return s
}

// texts reads a JSON array of least to most strings, all bounds inclusive.
func (d *decoder) texts(n node, least, most, length int) (texts []string, elements []node) {
	elements = d.list(n, least, most)
	texts = make([]string, len(elements))
	for i, element := range elements {
		texts[i] = d.text(element, length)
	}
	return texts, elements
}

// uniqueTexts is texts without repeats (spec 2.10).
func (d *decoder) uniqueTexts(n node, least, most, length int) []string {
	texts, elements := d.texts(n, least, most, length)
	seen := make(map[string]bool, len(texts))
	for i, text := range texts {
		if seen[text] {
			d.refuse(elements[i].place, "is a repeat")
		}
		seen[text] = true
	}
	return texts
}

// integer reads a JSON number from least to most, both inclusive, that is written with digits
// only: 100, not 1e2 or 100.0 (contract 4.10).
func (d *decoder) integer(n node, least, most int) int {
	i, err := strconv.Atoi(string(n.value))
	if n.value.Kind() != '0' || err != nil || i < least || i > most {
		d.refuse(n.place, fmt.Sprintf("must be a whole number from %d to %d", least, most))
	}
	return i
}
