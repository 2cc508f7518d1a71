package output

import (
	"fmt"
	"math"
	"strings"
)

// eighths of a block, from none to seven.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar is of a length in blocks, to the nearest eighth.
func bar(length float64) string {
	n := int(math.Round(length * 8))
	return strings.Repeat("█", n/8) + eighths[n%8]
}

// bars draws a bar of a metric for every row. A value below 0 goes to the left of the axis, where there is any.
func (p *plot) bars(text *strings.Builder, metric int) {
	c := p.columns[metric]
	names, values := make([]string, len(p.rows)), make([]string, len(p.rows))
	numbers := make([]float64, len(p.rows))
	longest, widest, least, greatest := 0, 0, 0.0, 0.0
	for i, row := range p.rows {
		names[i], values[i] = p.name(row, -1), shown(c, row[metric])
		numbers[i], _ = row[metric].Float64()
		longest, widest = max(longest, width(names[i])), max(widest, width(values[i]))
		least, greatest = min(least, numbers[i]), max(greatest, numbers[i])
	}
	longest = min(longest, p.options.Width/2)
	room := float64(max(p.options.Width-longest-widest-3, 10))
	scale := 0.0
	if greatest > least {
		scale = room / (greatest - least)
	}
	left := int(math.Ceil(-least * scale))
	fmt.Fprintf(text, "%s\n", c.Name)
	for i, name := range names {
		fmt.Fprintf(text, "%s  %s %s\n", padded(name, longest, false, true), side(numbers[i], scale, left), values[i])
	}
}

// side is a bar beside an axis with left blocks for values below 0.
func side(value, scale float64, left int) string {
	if value >= 0 {
		return strings.Repeat(" ", left) + bar(value*scale)
	}
	// There are no eighths that begin on the right.
	return padded(strings.Repeat("█", int(math.Round(-value*scale))), left, true, false)
}
