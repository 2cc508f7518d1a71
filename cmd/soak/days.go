package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// zonesFile lists the canonical zones (contract 4.9).
const zonesFile = "olap/daterange/zones.txt"

func readZones() ([]string, error) {
	text, err := os.ReadFile(zonesFile)
	if err != nil {
		return nil, fmt.Errorf("run it from the top of the repository: %w", err)
	}
	var zones []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			zones = append(zones, line)
		}
	}
	return zones, nil
}

// rangeAnywhere draws a range of the years 1 to 9999: near the data, where calendars and clocks change, at both ends,
// or anywhere.
func (g *generator) rangeAnywhere() dateRange {
	days := []int{1, 1 + g.random.IntN(maxDays), maxDays}[g.random.IntN(3)]
	switch g.random.IntN(5) {
	case 0:
		return g.rangeOf(g.until.AddDate(0, 0, -g.random.IntN(400)), days)
	case 1: // around the turn of a year, of a leap year in half of the draws
		year := 1 + g.random.IntN(9998)
		if g.random.IntN(2) == 0 {
			year = max(4, year&^3)
		}
		return g.rangeOf(time.Date(year, 12, 30+g.random.IntN(4), 0, 0, 0, 0, time.UTC), days)
	case 2: // around a change of the clock
		month := time.Month([]int{3, 4, 9, 10, 11}[g.random.IntN(5)])
		return g.rangeOf(time.Date(1850+g.random.IntN(400), month, 1+g.random.IntN(31), 0, 0, 0, 0, time.UTC), days)
	case 3:
		if g.random.IntN(2) == 0 {
			return g.rangeOf(date(firstDay).AddDate(0, 0, g.random.IntN(3)+days-1), days)
		}
		return g.rangeOf(date(lastDay).AddDate(0, 0, -g.random.IntN(3)), days)
	default:
		return g.rangeOf(time.Date(1+g.random.IntN(9999), 1, 1+g.random.IntN(365), 0, 0, 0, 0, time.UTC), days)
	}
}

// rangeOf is so many days up to a day, cut off where the years 1 to 9999 begin and end.
func (g *generator) rangeOf(end time.Time, days int) dateRange {
	end = earlier(end, date(lastDay))
	start := end.AddDate(0, 0, 1-days)
	if first := date(firstDay); start.Before(first) {
		start = first
	}
	return dateRange{start.Format(time.DateOnly), end.Format(time.DateOnly), g.zones[g.random.IntN(len(g.zones))]}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func date(day string) time.Time {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err) // the days are constants
	}
	return at
}
