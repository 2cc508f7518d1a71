package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/runlens/runlens/ingest"
)

const progressEvery = 5 * time.Second

// progress shows how far an ingest has come: a bar on a terminal, a line now and then elsewhere.
type progress struct {
	bar    *progressbar.ProgressBar
	logger *slog.Logger
	last   time.Time
}

// newProgress takes the bytes to read, 0 when nobody knows.
func newProgress(stderr io.Writer, total int64, logger *slog.Logger) *progress {
	p := &progress{logger: logger, last: time.Now()}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		if total == 0 {
			total = -1
		}
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(stderr),
			progressbar.OptionSetDescription("ingest"),
			progressbar.OptionShowBytes(true),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

func (p *progress) show(at ingest.Progress) {
	if p.bar != nil {
		p.bar.Set64(at.Bytes)
		return
	}
	if time.Since(p.last) >= progressEvery {
		p.last = time.Now()
		p.logger.Info("ingest progress", "source", at.Source, "read", at.Summary.Read, "rejected", at.Summary.Rejected, "bytes", at.Bytes)
	}
}

func (p *progress) end() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
