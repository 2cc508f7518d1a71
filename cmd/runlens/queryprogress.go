package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// queryProgress shows how many pages have come: on a terminal that has not the rows themselves at once, elsewhere in a
// line now and then.
type queryProgress struct {
	bar    *progressbar.ProgressBar
	stderr io.Writer
	quiet  bool
	last   time.Time
}

func newQueryProgress(a *asking) *queryProgress {
	p := &queryProgress{stderr: a.err, quiet: a.quiet, last: time.Now()}
	if output.IsTerminal(a.err) && (a.file != "" || !output.IsTerminal(a.out)) && !a.quiet {
		p.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(output.Controls(a.err)), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(10), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return p
}

func (p *queryProgress) page(f *report.Facts) {
	text := fmt.Sprintf("%d pages, %d rows written", f.Pages, f.Rows)
	if f.Buckets > 0 {
		text = fmt.Sprintf("%d pages of %d weeks or months, %d rows written", f.Pages, f.Buckets, f.Rows)
	}
	switch {
	case p.bar != nil:
		p.bar.Describe(text)
		p.bar.Add(1)
	case !p.quiet && time.Since(p.last) >= progressEvery:
		p.last = time.Now()
		say(p.stderr, "%s", text)
	}
}

func (p *queryProgress) end() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

// reportWait says why nothing happens for a time.
func reportWait(stderr io.Writer) func(client.Wait) {
	return func(w client.Wait) {
		seconds := math.Ceil(w.For.Seconds()*10) / 10
		if output.IsTerminal(stderr) {
			fmt.Fprint(output.Controls(stderr), "\r\x1b[K") // over the progress
		}
		say(stderr, "waiting %v s: %v", seconds, w.Cause)
	}
}

// summarize says what a person should know of the rows.
func summarize(stderr io.Writer, f *report.Facts, took time.Duration) {
	const form = "2006-01-02T15:04:05.000Z"
	asOf := f.AsOf.UTC().Format(form)
	if !f.AsOfLast.Equal(f.AsOf) {
		asOf += " to " + f.AsOfLast.UTC().Format(form)
	}
	say(stderr, "%s as of %s, %s, %.2f s", plural(f.Rows, "row"), asOf, plural(f.Pages, "page"), took.Seconds())
	for _, warning := range f.Warnings {
		say(stderr, "warning: %s", warning.Message)
	}
	for _, note := range f.Notes {
		say(stderr, "note: %s", note)
	}
	if f.More {
		say(stderr, "note: There are further rows: --all shows them.")
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
