package console

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unsafe"

	"github.com/runlens/runlens/cmd/internal/explain"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/cache"
)

const (
	// maxRows of an answer are drawn and shown, inclusive: 366 days of 50 agents are 18,300.
	maxRows = 20_000
	// keptAnswers and keptNames are how many bytes of answers and of names the console holds, and keptFor how long: an
	// answer that is shown when the next one fails. The API doesn't tell that records were purged, so a server that is
	// restarted is outlasted, and not much more.
	keptAnswers = 64 << 20
	keptNames   = 16 << 20
	keptFor     = time.Hour
	// atOnce is how many questions are asked at the same time: fewer than the four that a server answers of one
	// organization by default, so that others find room.
	atOnce = 3
)

// An answer is the rows of one question, as they were at a time.
type answer struct {
	question report.Question
	span     report.Span
	query    client.Query // of the whole span
	columns  []report.Column
	rows     []report.Row
	facts    report.Facts
	at       time.Time // when it was asked
	took     time.Duration
}

// A refusal says why there is no answer, in one line that says what to do.
type refusal struct {
	line    string
	forbids string // what the key may not ask, if it sees less than its organization; empty otherwise
	Passes  bool   // the same question may be answered later
}

func (r *refusal) Error() string { return r.line }

// ask answers a question, from memory if it was asked within fresh. Several who ask the same wait for one answer.
// The error is a *refusal, or the context's.
func (c *Console) ask(ctx context.Context, q report.Question, fresh time.Duration) (*answer, error) {
	now := c.Now()
	span, err := q.Span(now)
	if err != nil {
		return nil, &refusal{line: err.Error()}
	}
	key := keyOf(look{Question: q, Top: defaultTop, Chart: "line", By: "value"}.values().Encode() + " " + span.String())
	return c.asking.Do(ctx, key, func(ctx context.Context) (*answer, error) {
		if kept, ok := c.answers.Get(everybody, key); ok && c.Now().Sub(kept.at) < fresh {
			return kept, nil
		}
		select {
		case c.asks <- struct{}{}:
			defer func() { <-c.asks }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		a, err := c.run(ctx, q, now)
		if err == nil {
			c.learn(a)
			c.answers.Put(everybody, key, a, a.bytes())
		}
		return a, err
	})
}

// everybody owns what the console holds: it shows one organization.
const everybody = ""

func keyOf(text string) cache.Key { return cache.KeyOf([]byte(text)) }

// questionBytes is about what a question with its span, columns and facts takes.
const questionBytes = 16 << 10

// bytes is about what an answer takes in memory.
func (a *answer) bytes() int {
	bytes := questionBytes
	for _, row := range a.rows {
		bytes += int(unsafe.Sizeof(row)) + len(row)*int(unsafe.Sizeof(client.Value{}))
		for _, value := range row {
			bytes += len(value.String()) * 9 / 8
		}
	}
	return bytes
}

func (c *Console) run(ctx context.Context, q report.Question, now time.Time) (*answer, error) {
	a := &answer{question: q, at: now}
	began := time.Now()
	run := report.Run{Client: c.Client, Question: q}
	err := run.Check(now)
	if err != nil {
		return nil, &refusal{line: err.Error()}
	}
	if a.span, err = q.Span(now); err != nil {
		return nil, &refusal{line: err.Error()}
	}
	a.query = run.Query()
	table, err := run.Table(ctx)
	if err == nil {
		err = a.read(table, &run.Facts)
	}
	if err != nil {
		return nil, c.refused(ctx, err, run.Query())
	}
	a.columns, a.facts, a.took = table.Columns, run.Facts, time.Since(began)
	return a, nil
}

func (a *answer) read(table report.Table, facts *report.Facts) error {
	for row, err := range table.Rows {
		if err != nil {
			return err
		}
		if len(a.rows) == maxRows {
			facts.More = true
			break
		}
		a.rows = append(a.rows, row)
	}
	facts.Rows = len(a.rows)
	return nil
}

// forget removes everything that was answered: the key may not read it any longer.
func (c *Console) forget() {
	c.answers.Clear()
	c.lastShown.Clear()
	c.names.Clear()
}

// refused explains an error of the client.
func (c *Console) refused(ctx context.Context, err error, q client.Query) error {
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	line, _ := explain.Refusal(ctx, err, q, c.Client.Catalog)
	r := &refusal{line: line, Passes: true}
	if answered, ok := errors.AsType[*client.Error](err); ok {
		limited := answered.Status == http.StatusTooManyRequests && answered.Reason != client.ReasonTooExpensive
		r.Passes = limited || answered.Status >= http.StatusInternalServerError
		switch answered.Code {
		case client.CodeRestrictedKey:
			r.forbids = answered.Reason
		case client.CodeUnauthorized, client.CodeInsufficientScope:
			c.forget()
		}
	}
	return r
}
