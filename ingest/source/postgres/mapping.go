package postgres

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/runlens/runlens/ingest/normalize"
)

// Layout is the default layout as SQL that creates it.
//
//go:embed layout.sql
var Layout string

// DefaultMapping reads the default layout.
//
//go:embed mapping.sql
var DefaultMapping string

// A Mapping has one SELECT per kind of records.
type Mapping map[normalize.Kind]string

var mappingHead = regexp.MustCompile(`(?m)^--\s*record:\s*(\S+)\s*$`)

// endOfSelect matches a semicolon with nothing but comments after it.
var endOfSelect = regexp.MustCompile(`(?s);(?:[\s;]|--[^\n]*|/\*.*?\*/)*$`)

// Fingerprint distinguishes the SELECT of a kind from every other one, also from one that reads the same rows.
func (m Mapping) Fingerprint(kind normalize.Kind) string {
	sum := sha256.Sum256([]byte(m[kind]))
	return hex.EncodeToString(sum[:16])
}

// ParseMapping reads a mapping file: for each kind of records a comment line "-- record: run" and
// below it one SELECT. Its columns are named like the fields of the record (contract 3), in any
// order; that of attributions has updated_at besides, the clock of its changes. Comments may follow its semicolon.
func ParseMapping(text string) (Mapping, error) {
	heads := mappingHead.FindAllStringSubmatchIndex(text, -1)
	if len(heads) == 0 {
		return nil, fmt.Errorf(`the mapping has no line "-- record: KIND"`)
	}
	m := Mapping{}
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		kind := normalize.Kind(text[head[2]:head[3]])
		statement := strings.TrimSpace(endOfSelect.ReplaceAllString(text[head[1]:end], ""))
		switch {
		case !slices.Contains(normalize.Kinds, kind):
			return nil, fmt.Errorf("the mapping names record %q; it must be agent, run or attribution", kind)
		case m[kind] != "":
			return nil, fmt.Errorf("the mapping has record %s twice", kind)
		case statement == "":
			return nil, fmt.Errorf("the mapping has no SELECT below record %s", kind)
		}
		m[kind] = statement
	}
	for _, kind := range normalize.Kinds {
		if m[kind] == "" {
			return nil, fmt.Errorf("the mapping lacks record %s", kind)
		}
	}
	return m, nil
}
