package main

import (
	"io"
	"log/slog"
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

// newProgress takes the bytes to read, 0 when unknown.
func newProgress(stderr io.Writer, what string, total int64, logger *slog.Logger) *progress {
	p := &progress{what: what, total: total, logger: logger, last: time.Now()}
	if output.IsTerminal(stderr) {
		if total == 0 {
			total = -1
		}
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(output.Controls(stderr)),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowBytes(true),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// show says how many bytes were read, and besides how many records (attributes as slog takes them).
func (p *progress) show(bytes int64, records ...any) {
	if p.bar != nil {
		p.bar.Set64(bytes)
		return
	}
	if time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	p.logger.Info(p.what+" progress", append(records, "bytes", bytes, "of", p.total)...)
}

func (p *progress) end() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
