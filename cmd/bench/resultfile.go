package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// write puts the report as JSON into the file: of everything that was measured the median and the number of
// measurements.
func (r *report) write(file string) error {
	text, err := json.MarshalIndent(r.rounded(), "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, rowByRow(text), 0o644)
}

// rowByRow is indented JSON with each element of the outermost lists and objects in one line, so that two runs can be
// compared line by line.
func rowByRow(indented []byte) []byte {
	var text bytes.Buffer
	for line := range bytes.Lines(indented) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		inner := bytes.TrimLeft(line, " ")
		depth := (len(line) - len(inner)) / 2
		switch {
		case depth > 2 || depth == 2 && (inner[0] == '}' || inner[0] == ']'):
			if last := text.Bytes()[text.Len()-1]; last == ',' {
				text.WriteByte(' ')
			}
			text.Write(inner)
		case text.Len() > 0:
			text.WriteByte('\n')
			text.Write(line)
		default:
			text.Write(line)
		}
	}
	text.WriteByte('\n')
	return text.Bytes()
}

// rounded is the report with as many digits as mean something.
func (r *report) rounded() *report {
	rounded := *r
	rounded.Results = slices.Clone(r.Results)
	for i := range rounded.Results {
		of := &rounded.Results[i]
		of.Ours, of.Reference, of.Measured = of.Ours.rounded(), of.Reference.rounded(), significant(of.Measured)
	}
	rounded.Costs = slices.Clone(r.Costs)
	for i := range rounded.Costs {
		of := &rounded.Costs[i]
		of.Ours, of.Reference = of.Ours.rounded(), of.Reference.rounded()
	}
	return &rounded
}

func (s *stats) rounded() *stats {
	if s == nil {
		return nil
	}
	return &stats{Median: significant(s.Median), Samples: s.Samples}
}

func (c requestCost) rounded() requestCost {
	for _, n := range []*float64{&c.Median, &c.Engine, &c.Server, &c.Statements, &c.RowsRead, &c.Allocations,
		&c.AllocatedKiB} {
		*n = significant(*n)
	}
	return c
}

// significant is a number to four digits.
func significant(n float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(n, 'g', 4, 64), 64) // of what it printed itself
	return rounded
}
