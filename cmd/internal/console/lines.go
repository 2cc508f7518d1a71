package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A lineDrawing is a chart as SVG, for pages that run no script.
type lineDrawing struct {
	Sentence, Summary string
	Lines             []svgLine
	Dots              []svgDot
	Bars              []svgBar
	Ticks             []svgText
	Days              []svgText
	Names             []svgName // of the lines; empty where there is only one
	Height            int
}

type svgLine struct {
	Points string
	Class  string
	Dashed bool // a period at one of its ends is not over
}

type svgDot struct {
	X, Y  float64
	Class string
}

type svgBar struct {
	X, Y, Width, Height float64
	Class               string
	Open                bool
}

type svgText struct {
	X, Y float64
	Text string
}

type svgName struct{ Class, Name string }

// The drawing is linesWidth wide. The lines are in the box between these edges.
const (
	linesWidth  = 640
	linesHeight = 220
	linesLeft   = 58.0
	linesRight  = 630.0
	linesTop    = 10.0
	linesBottom = 195.0
)

// drawLines draws a chart. Every stretch between two values is a line; a value without neighbours is a dot, and
// where there is no value there is a gap.
func drawLines(c chart) lineDrawing {
	d := lineDrawing{Sentence: c.Sentence, Summary: c.Summary, Height: linesHeight}
	most := 0.0
	for _, s := range c.Series {
		for _, v := range s.Values {
			if v != nil {
				most = max(most, *v)
			}
		}
	}
	step := niceStep(most)
	if !c.Rate {
		step = math.Ceil(step) // half a run says nothing
	}
	top := math.Max(step*math.Ceil(most/step), step)
	x := func(i int) float64 {
		if c.Kind == "bar" {
			return linesLeft + (linesRight-linesLeft)*(float64(i)+0.5)/float64(len(c.Days))
		}
		return linesLeft + (linesRight-linesLeft)*float64(i)/float64(max(len(c.Days)-1, 1))
	}
	y := func(v float64) float64 { return linesBottom - (linesBottom-linesTop)*v/top }
	for tick := 0.0; tick <= top*1.001; tick += step {
		d.Ticks = append(d.Ticks, svgText{linesLeft, y(tick), markText(c.Rate, tick)})
	}
	date := "2 Jan"
	if c.Unit == "month" {
		date = "Jan 2006"
	}
	every := max((len(c.Days)+5)/6, 1)
	for i := 0; i < len(c.Days); i += every {
		d.Days = append(d.Days, svgText{x(i), linesBottom + 16, time.Unix(c.Days[i], 0).UTC().Format(date)})
	}
	group := 0
	for n, s := range c.Series {
		class := fmt.Sprintf("s%d", group%8+1)
		if s.Before {
			class = "earlier"
		} else {
			group++
		}
		if len(c.Series) > 1 {
			name := cmp.Or(s.Name, words(c.Metric))
			if s.Before {
				name += ", before"
			}
			d.Names = append(d.Names, svgName{class, name})
		}
		open := c.Open
		if s.Before {
			open = nil // the earlier period is over
		}
		if c.Kind == "bar" {
			d.bars(n, len(c.Series), s.Values, open, class, y)
		} else {
			d.draw(s.Values, open, class, x, y)
		}
	}
	return d
}

// draw adds the lines of one series.
func (d *lineDrawing) draw(values []*float64, open []int, class string, x func(int) float64, y func(float64) float64) {
	for i, v := range values {
		if v == nil {
			continue
		}
		next := i+1 < len(values) && values[i+1] != nil
		if next {
			dashed := slices.Contains(open, i) || slices.Contains(open, i+1)
			points := fmt.Sprintf("%.1f,%.1f %.1f,%.1f", x(i), y(*v), x(i+1), y(*values[i+1]))
			last := len(d.Lines) - 1
			if i > 0 && values[i-1] != nil && last >= 0 && d.Lines[last].Dashed == dashed && d.Lines[last].Class == class {
				d.Lines[last].Points += " " + points[strings.Index(points, " ")+1:]
			} else {
				d.Lines = append(d.Lines, svgLine{points, class, dashed})
			}
		} else if i == 0 || values[i-1] == nil {
			d.Dots = append(d.Dots, svgDot{round(x(i)), round(y(*v)), class})
		}
	}
}

// bars adds the bars of one of several series.
func (d *lineDrawing) bars(n, count int, values []*float64, open []int, class string, y func(float64) float64) {
	pitch := (linesRight - linesLeft) / float64(len(values))
	width := pitch * 0.8 / float64(count)
	for i, v := range values {
		if v != nil {
			left := linesLeft + pitch*(float64(i)+0.1) + width*float64(n)
			d.Bars = append(d.Bars, svgBar{round(left), round(y(*v)), round(width * 0.95), round(linesBottom - y(*v)), class,
				slices.Contains(open, i)})
		}
	}
}

// markText is a mark of an axis with all of its digits, since a mark that is rounded stands elsewhere than it says.
func markText(rate bool, v float64) string {
	if rate {
		return strconv.FormatFloat(round(v*100), 'f', -1, 64) + "%"
	}
	return thousands(strconv.FormatFloat(v, 'f', -1, 64))
}

func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// niceStep is a distance of ticks such that there are two to five up to a value.
func niceStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, part := range []float64{0.2, 0.25, 0.5, 1} {
		if most/(power*part) <= 5 {
			return power * part
		}
	}
	return 2 * power
}
