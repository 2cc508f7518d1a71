// Package threshold finds the rows of a report for which the conditions of runlens query --fail-if hold.
package threshold

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client/report"
)

// A Threshold is a condition of --fail-if.
type Threshold struct {
	text     string
	metric   string
	operator string
	bound    *big.Rat
	column   int
}

var thresholdForm = regexp.MustCompile(`^\s*([a-z0-9_]+)\s*(<=|>=|==|!=|<|>)\s*(\S+)\s*$`)

// Parse reads conditions such as "run_success_rate < 0.9".
func Parse(texts []string) ([]Threshold, error) {
	var thresholds []Threshold
	for _, text := range texts {
		parts := thresholdForm.FindStringSubmatch(text)
		if parts == nil {
			return nil, fmt.Errorf("--fail-if %s must be METRIC, one of < <= > >= == !=, and a number", text)
		}
		bound, ok := exactly(parts[3])
		if !ok {
			return nil, fmt.Errorf("--fail-if %s: %s is no number", text, parts[3])
		}
		thresholds = append(thresholds, Threshold{strings.TrimSpace(text), parts[1], parts[2], bound, -1})
	}
	return thresholds, nil
}

// exactly reads a decimal number of a float64's magnitude.
func exactly(text string) (*big.Rat, bool) {
	if _, err := strconv.ParseFloat(text, 64); err != nil || strings.ContainsAny(text, "xXpP_nN") {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// On finds the threshold's column.
func (t Threshold) On(columns []report.Column) (Threshold, error) {
	var names []string
	for i, c := range columns {
		if c.Numeric() {
			names = append(names, c.Name)
			if c.Name == t.metric {
				t.column = i
			}
		}
	}
	if t.column < 0 {
		return t, fmt.Errorf("--fail-if %s: the answer has no %s; it has %s", t.text, t.metric, strings.Join(names, ", "))
	}
	return t, nil
}

// A Crossing is a row for which a threshold's condition holds.
type Crossing struct {
	Key   string // the condition and the values of the dimensions, without names: one row's, whatever its value is
	Where string // the condition, and the row with its names; as people read them
	Value string // with a percentage for a rate
}

func (c Crossing) String() string { return c.Where + " is " + c.Value }

// Crossed reports whether the condition holds for a row, and says where. Null is compared with nothing.
func (t Threshold) Crossed(columns []report.Column, row report.Row) (c Crossing, crossed bool) {
	value, ok := exactly(row[t.column].String())
	if !ok || !t.holds(value.Cmp(t.bound)) {
		return c, false
	}
	return t.At(columns, row), true
}

// At is the Crossing of a row, whether or not the condition holds for it.
func (t Threshold) At(columns []report.Column, row report.Row) (c Crossing) {
	var ids, names []string
	for i, c := range columns {
		if !c.Numeric() && (c.Member == "" || c.Name == c.Member) && !row[i].IsNull() {
			value := row[i].String()
			names = append(names, c.Name+" "+value)
			if strings.ContainsAny(value, `,"\`) { // or the value could look like another dimension's
				value = strconv.Quote(value)
			}
			ids = append(ids, c.Name+" "+value)
			if i+1 < len(columns) && columns[i+1].Member == c.Member && !columns[i+1].Numeric() && !row[i+1].IsNull() {
				names[len(names)-1] += " (" + row[i+1].String() + ")" // the name that people know
			}
		}
	}
	c.Key, c.Where = t.text+": the value", t.text+": the value"
	if len(ids) > 0 {
		c.Key, c.Where = c.Key+" of "+strings.Join(ids, ", "), c.Where+" of "+strings.Join(names, ", ")
	}
	c.Value = row[t.column].String()
	if f, ok := row[t.column].Float64(); ok && strings.HasSuffix(t.metric, "_rate") {
		c.Value += " (" + output.RateText(f, 2) + ")"
	}
	return c
}

// Counting is the column of the first metric that counts; -1 for none.
func Counting(columns []report.Column) int {
	return slices.IndexFunc(columns, func(c report.Column) bool { return c.Kind == report.Count && c.Name == c.Member })
}

func (t Threshold) holds(order int) bool {
	signs := map[string][]int{"<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}, "==": {0}, "!=": {-1, 1}}
	return slices.Contains(signs[t.operator], order)
}
