package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

const recordsPath = "/api/ingest/v1/records"

// A Pushed is the answer to a push.
type Pushed struct {
	Lines    int // that are not blank
	Stored   int // of Lines
	Rejected int // of Lines, the others
	// Rejects are the first of those that are rejected, by their lines. If there are fewer than Rejected, push what comes
	// after the last one again to learn of more.
	Rejects []Reject
}

// A Reject is a line that breaks a rule.
type Reject struct {
	Line  int    // from 1; blank lines count
	Field string // empty where no field can be named
	Error string
}

// Push stores records, NDJSON of at most 16 MiB and 100,000 lines, with a key that has the scope ingest:write. It
// returns when all good lines are stored. Pushing the same again changes nothing, so it is repeated like a question,
// and may be again after an error: that is an *Error, a *ConnectionError or the context's.
func (c *Client) Push(ctx context.Context, records []byte) (*Pushed, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(records); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	a, err := c.send(ctx, message{http.MethodPost, recordsPath, packed.Bytes(), "application/x-ndjson", "gzip"})
	var refused *Error
	if err != nil && !(errors.As(err, &refused) && refused.Code == CodeNoValidRecord) {
		return nil, err
	}
	var pushed Pushed
	if err := json.Unmarshal(a.body, &pushed); err != nil {
		return nil, a.unreadable(err)
	}
	// What is JSON alone says nothing of the records: a proxy's "{}" is no acknowledgement.
	read := pushed.Lines > 0 || len(bytes.TrimSpace(records)) == 0
	if !read || pushed.Stored+pushed.Rejected != pushed.Lines {
		return nil, a.unreadable(fmt.Errorf("of %d lines it stored %d and rejected %d", pushed.Lines, pushed.Stored,
			pushed.Rejected))
	}
	return &pushed, nil
}
