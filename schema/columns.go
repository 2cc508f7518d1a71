package schema

import (
	"regexp"
	"slices"
	"strings"
)

// A Column is a column as a CREATE TABLE statement has it: its name, type and default.
type Column struct{ Name, Definition string }

var (
	comment = regexp.MustCompile(`(?m)--.*$`)
	// Codecs say how a column is stored, and change no answer.
	codec = regexp.MustCompile(`\s*\bCODEC\((?:[^()]|\([^()]*\))*\)`)
	// ClickHouse keeps it as two comparisons.
	between = regexp.MustCompile(`if\((.+) BETWEEN (\d+) AND (\d+),`)
	space   = regexp.MustCompile(`\s+`)

	addColumn     = regexp.MustCompile(`(?s)ALTER TABLE (\w+) ADD COLUMN IF NOT EXISTS (\w+) (.*)`)
	modifySetting = regexp.MustCompile(`ALTER TABLE (\w+) MODIFY SETTING (.*)`)
	// Settings on which rests whether what is acknowledged survives, and whether projections have what the table has.
	kept = regexp.MustCompile(`\b(?:fsync_\w+|min_rows_to_fsync_after_merge|deduplicate_merge_projection_mode) = [^,\s]+`)
)

// Columns returns the columns of a CREATE TABLE statement, of a migration or of ClickHouse.
func Columns(create string) (columns []Column) {
	_, body, _ := strings.Cut(comment.ReplaceAllString(create, ""), "(")
	for _, element := range elements(body) {
		name, definition, _ := strings.Cut(strings.TrimSpace(element), " ")
		if !slices.Contains([]string{"PROJECTION", "INDEX", "CONSTRAINT"}, name) {
			columns = append(columns, Column{strings.Trim(name, "`"), plainDefinition(definition)})
		}
	}
	return columns
}

func plainDefinition(text string) string {
	text = between.ReplaceAllString(codec.ReplaceAllString(text, ""), "if($1 >= $2 AND $1 <= $3,")
	return strings.TrimSpace(space.ReplaceAllString(text, " "))
}

// elements are what commas separate, up to the parenthesis that closes the list.
func elements(list string) (all []string) {
	depth, begin, quoted := 0, 0, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case (c == ',' || c == ')') && depth == 0:
			if all = append(all, list[begin:i]); c == ')' {
				return all
			}
			begin = i + 1
		}
	}
	return all
}

// alter changes the shape that an ALTER statement of a migration changes.
func alter(shapes []Shape, statement string) {
	table := func(name string) *Shape {
		return &shapes[slices.IndexFunc(shapes, func(s Shape) bool { return s.Name == name })]
	}
	if added := addColumn.FindStringSubmatch(statement); added != nil {
		of := table(added[1])
		of.Columns = append(of.Columns, Column{added[2], plainDefinition(added[3])})
	} else if set := modifySetting.FindStringSubmatch(statement); set != nil {
		of := table(set[1])
		of.Settings = append(of.Settings, set[2])
	}
}
