// Package report is what the terminal, the console and assistants add to the reports of the Go client: saved questions
// and thresholds. The names of client/report that they use are here under the same ones.
package report

import "github.com/runlens/runlens/http/client/report"

// What a question is, and what answers it.
type (
	Question = report.Question
	Span     = report.Span
	Period   = report.Period
	Run      = report.Run
	Facts    = report.Facts
	Table    = report.Table
	Column   = report.Column
	Kind     = report.Kind
	Row      = report.Row
)

// The kinds of columns.
const (
	Text    = report.Text
	Date    = report.Date
	Count   = report.Count
	Number  = report.Number
	Percent = report.Percent
)

// These end the names of the columns of a comparison.
const (
	EndPrevious   = report.EndPrevious
	EndDifference = report.EndDifference
	EndPercent    = report.EndPercent
)

// These are the functions of client/report.
var (
	TodayIn     = report.TodayIn
	ParseFilter = report.ParseFilter
	FilterText  = report.FilterText
	PartName    = report.PartName
)
