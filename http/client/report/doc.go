// Package report turns a person's question into queries of the API, and their pages into one table of rows: periods
// that end today, weeks and months, comparison with an earlier period, and filled gaps. It is what runlens query asks
// with.
//
//	q := report.Default()
//	q.Metrics, q.Last, q.Grain, q.Compare = []string{"run_count"}, "12w", "week", "previous"
//	run := report.Run{Client: c, Question: q}
//	err := run.Check(time.Now()) // wrong usage, before anything is sent
//	table, err := run.Table(ctx)
//	for row, err := range table.Rows { … }
//
// Rows stream through it; it holds at most three pages, and 500 rows of a comparison in the order of a metric.
// Run.Facts has what is known of the answers when the rows have been read.
//
// The package depends on the standard library and on package client only. A program for machines without tz data
// imports time/tzdata.
package report
