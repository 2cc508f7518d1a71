package main

import (
	"context"
	"errors"
	"fmt"
	stdio "io"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/olap/snapshot"
)

// A push has so many records or bytes of lines, whichever it reaches first.
const (
	pushRecords = 10_000
	pushText    = 4 << 20
)

type pushCmd struct {
	serverFlags
	formatFlags
	Files   []string `arg:"" name:"file" placeholder:"FILE" help:"@ingest_files"`
	Rejects string   `placeholder:"FILE" help:"@rejects"`
	JSON    bool     `help:"Print the summary as one JSON object."`
}

func (pushCmd) Help() string {
	return `Reads files as 'runlens ingest' does and sends their records to a running server, which stores them. The key
needs the scope ingest:write, and all records must be of its organization.
A record that breaks a rule is rejected alone. The rest is stored, and the exit code is 3.
A server that is busy or restarts is waited for. Pushing the same files again changes nothing, so that is what to do
after an interrupt or a failure.

Example:
  runlens keys create --org acme --name nightly --scopes ingest:write       # where the store is
  RUNLENS_API_KEY=... runlens push --url https://analytics.example.com 'runs-*.ndjson.zst'
  psql -c "COPY (SELECT ...) TO STDOUT CSV HEADER" | runlens push --format csv --record run -`
}

func (c pushCmd) Run(ctx context.Context, command *kong.Context, logger *slog.Logger, io streams) error {
	return interruptible(ctx, 0, func(ctx context.Context) error {
		return c.push(ctx, explicitFlags(command), logger, io)
	})
}

func (c pushCmd) push(ctx context.Context, given map[string]bool, logger *slog.Logger, io streams) error {
	readingMemory.bound()
	in, err := c.open(c.Files, io)
	if err != nil {
		return usageError{err}
	}
	if err := refuseInputs("--rejects", c.Rejects, io.in, in.names()...); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	server, err := c.client(given, io, false)
	if err != nil {
		return err
	}
	rejects, err := newRejects(c.Rejects, "", false, io.err)
	if err != nil {
		return usageError{err}
	}
	progress := newProgress(io.err, "push", in.bytes, logger)
	p := &pusher{client: server, rejects: rejects, normalizer: normalize.NewNormalizer()}
	began := time.Now()
	for i, file := range in.files {
		file.Stop = ctx.Done()
		p.show = func() {
			progress.show(in.read(ingest.Progress{Source: i, BytesRead: file.BytesRead()}), "read", p.summary.Read, "rejected",
				p.summary.Rejected)
		}
		if err = p.file(ctx, file); err != nil {
			break
		}
	}
	err = errors.Join(err, p.send(ctx))
	progress.end()
	err = errors.Join(err, rejects.Close())
	summary := ingestCmd{JSON: c.JSON}
	printErr := summary.print(io.out, p.summary, ingest.Summary{}, time.Since(began), err)
	switch {
	case errors.Is(err, source.ErrInterrupted), ctx.Err() != nil:
		err = errors.New("stopped before the end; push the same again, which changes nothing twice")
	case err == nil && p.summary.Rejected > 0:
		err = exitError{exitRejected}
	}
	return errors.Join(err, printErr)
}

// A pusher sends records in bodies, one after another.
type pusher struct {
	client  *client.Client
	rejects rejects
	show    func()
	summary ingest.Summary
	reached bool // the server has stored something

	normalizer *normalize.Normalizer

	text    []byte // of the next body
	records []pushedRecord
}

// A pushedRecord is a record of the next body.
type pushedRecord struct {
	name       string // of the file
	kind       normalize.Kind
	line       int
	begin, end int // in text
}

// file reads a file and sends all whole bodies.
func (p *pusher) file(ctx context.Context, file *source.File) error {
	in, err := file.From(source.Position{})
	if err != nil {
		return fmt.Errorf("read %s: %w", file.Name, err)
	}
	defer in.Close()
	for {
		record, err := in.Next()
		switch {
		case errors.Is(err, stdio.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read %s: %w", file.Name, err)
		}
		if err := p.add(file.Name, record); err != nil {
			return err
		}
		if len(p.records) == pushRecords || len(p.text) >= pushText {
			if err := p.send(ctx); err != nil {
				return err
			}
		}
	}
}

// add puts a record into the next body, or says why not. The rules are applied before anything is sent: text that
// breaks one, such as bytes that are no UTF-8, may not survive as JSON. The server has the last word all the same.
func (p *pusher) add(name string, record *source.Record) error {
	p.summary.Read++
	begin, fault := len(p.text), record.Fault
	if fault == nil {
		fault = p.normalizer.Check(&record.Raw)
	}
	if fault == nil {
		if p.text = record.Raw.AppendJSON(p.text); len(p.text)-begin > source.MaxLineBytes {
			p.text, fault = p.text[:begin], source.ErrTooLong // the server would refuse the whole body for a longer one
		}
	}
	if fault != nil {
		p.summary.Rejected++
		return p.rejects.Add(ingest.NewReject(name, record, fault))
	}
	p.text = append(p.text, '\n')
	p.records = append(p.records, pushedRecord{name, record.Raw.Kind, record.Line, begin, len(p.text)})
	return nil
}

// send sends what was read, once, and takes note of the answer. Where not all rejects are named, it sends what comes
// after the last one again.
func (p *pusher) send(ctx context.Context) error {
	if len(p.records) == 0 {
		return nil
	}
	defer func() { p.text, p.records = p.text[:0], p.records[:0] }()
	bad := map[normalize.Kind]int64{}
	for from := 0; from < len(p.records); {
		pushed, err := p.patiently(ctx, p.text[p.records[from].begin:])
		if err != nil {
			return err
		}
		if sent := len(p.records) - from; pushed.Lines != sent {
			return fmt.Errorf("the server has read %d of %d lines", pushed.Lines, sent)
		}
		for _, r := range pushed.Rejects {
			if r.Line < 1 || from+r.Line > len(p.records) {
				return fmt.Errorf("the server rejects line %d of %d", r.Line, len(p.records)-from)
			}
			record := p.records[from+r.Line-1]
			bad[record.kind]++
			if err := p.reject(record, r); err != nil {
				return err
			}
		}
		if len(pushed.Rejects) == pushed.Rejected {
			break
		}
		if len(pushed.Rejects) == 0 {
			return fmt.Errorf("the server rejects %d of %d lines and names none", pushed.Rejected, len(p.records)-from)
		}
		from += pushed.Rejects[len(pushed.Rejects)-1].Line
	}
	for _, r := range p.records {
		switch r.kind {
		case normalize.KindAgent:
			p.summary.Agents++
		case normalize.KindRun:
			p.summary.Runs++
		default:
			p.summary.Attributions++
		}
	}
	p.summary.Agents -= bad[normalize.KindAgent]
	p.summary.Runs -= bad[normalize.KindRun]
	p.summary.Attributions -= bad[normalize.KindAttribution]
	p.show()
	return nil
}

func (p *pusher) reject(record pushedRecord, r client.Reject) error {
	p.summary.Rejected++
	line := p.text[record.begin : record.end-1]
	return p.rejects.Add(ingest.Reject{
		Source: record.name, Line: record.line, Field: r.Field, Error: r.Error,
		Record: jsontext.Value(append([]byte(nil), line...)),
	})
}

// patiently pushes a body. Once the server has answered, it is waited for as long as ingest waits for a store.
func (p *pusher) patiently(ctx context.Context, body []byte) (*client.Pushed, error) {
	for began := time.Now(); ; {
		pushed, err := p.client.Push(ctx, body)
		if err == nil {
			p.reached = true
			return pushed, nil
		}
		var lost *client.ConnectionError
		var refused *client.Error
		passing := errors.As(err, &lost) || errors.As(err, &refused) && refused.Status >= 500
		if !passing || !p.reached || ctx.Err() != nil || time.Since(began) > ingest.Patience {
			return nil, err
		}
		// The client has waited between its own attempts, if it made any.
		if snapshot.Pause(ctx, time.Second) != nil {
			return nil, err
		}
	}
}
