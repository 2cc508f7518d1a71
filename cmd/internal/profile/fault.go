package profile

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	yamlLine  = regexp.MustCompile(`(?s)^(?:yaml: )?(?:unmarshal errors:\s*)?line ([0-9]+): (.*)`)
	yamlField = regexp.MustCompile(`^field (\S+) not found in type .*`)
	yamlValue = regexp.MustCompile("^cannot unmarshal !!\\S+ ?(`.*`)? ?into (.*)")
)

// Fault is the line of a YAML file that an error of Decode, or of a node's Decode, is about, 0 for none, and what is
// wrong there, without the names of Go's types. Other errors keep their text.
func Fault(err error) (line int, text string) {
	text = err.Error()
	if parts := yamlLine.FindStringSubmatch(text); parts != nil {
		line, _ = strconv.Atoi(parts[1]) // digits
		text, _, _ = strings.Cut(parts[2], "\n")
	}
	text = strings.TrimPrefix(text, "yaml: ")
	if parts := yamlField.FindStringSubmatch(text); parts != nil {
		text = "there is no field " + parts[1]
	}
	if parts := yamlValue.FindStringSubmatch(text); parts != nil {
		text = "this must be " + kindOf(parts[2])
		if parts[1] != "" {
			text = strings.Replace(text, "this", parts[1], 1)
		}
	}
	return line, text
}

// kindOf is what a value of a Go type is in YAML.
func kindOf(goType string) string {
	switch {
	case goType == "time.Duration":
		return "a duration such as 1h"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"), strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "string":
		return "a text"
	}
	return "fields with their values"
}
