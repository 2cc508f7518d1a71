package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/runlens/runlens/cmd/internal/output"
)

const progressEvery = 5 * time.Second

// progress shows how far a command has come: a bar on a terminal, a line now and then elsewhere.
type progress struct {
	bar    *progressbar.ProgressBar
	what   string
	total  int64
	logger *slog.Logger
	last   time.Time
}

// noBytes is the total of a progress that is told in records alone.
const noBytes = -1

// newProgress takes the bytes to read, 0 when unknown, or noBytes.
func newProgress(stderr io.Writer, what string, total int64, logger *slog.Logger) *progress {
	p := &progress{what: what, total: total, logger: logger, last: time.Now()}
	if output.IsTerminal(stderr) {
		if total == 0 {
			total = -1
		}
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(output.Controls(stderr)),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowBytes(p.total != noBytes),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond),
		)
	}
	return p
}

// show says how many bytes were read, and besides how many records (attributes as slog takes them).
func (p *progress) show(bytes int64, records ...any) {
	switch {
	case p.bar != nil && p.total == noBytes:
		p.bar.Describe(strings.TrimSuffix(fmt.Sprintln(append([]any{p.what}, records...)...), "\n"))
		p.bar.Add(1)
		return
	case p.bar != nil:
		p.bar.Set64(bytes)
		return
	case time.Since(p.last) < progressEvery:
		return
	case p.total != noBytes:
		records = append(records, "bytes", bytes, "of", p.total)
	}
	p.last = time.Now()
	p.logger.Info(p.what+" progress", records...)
}

func (p *progress) end() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
