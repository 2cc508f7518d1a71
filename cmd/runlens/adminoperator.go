package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

// overviewTimeout bounds what the overview of usage may wait for the store.
const overviewTimeout = 5 * time.Second

// An operatorAPI answers on the admin address what 'runlens usage' and 'runlens explain' print, for operators without
// access to the store. It names all organizations, and quotes SQL: it is for who has the token.
type operatorAPI struct {
	served       servedCells
	queryTimeout time.Duration // of a question to explain, with what it waits for others
	maxBodyBytes int
	logger       *slog.Logger

	explaining chan struct{} // holds a mark: one at a time, so that operators don't add to an overload
}

// private are the API's routes, for admin.Content.
func (o *operatorAPI) private() map[string]http.Handler {
	o.explaining = make(chan struct{}, 1)
	return map[string]http.Handler{
		"GET /usage":    http.HandlerFunc(o.usage),
		"POST /explain": http.HandlerFunc(o.explain),
	}
}

// usage answers a usage.Overview.
func (o *operatorAPI) usage(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), overviewTimeout)
	defer cancel()
	var conns []driver.Conn
	for _, c := range o.served.cells {
		opened, err := c.get()
		if err != nil {
			o.failed(w, "usage", err)
			return
		}
		conns = append(conns, opened.store.Conn())
	}
	overview, err := usage.ReadOverview(ctx, time.Now(), conns...)
	if err != nil {
		o.failed(w, "usage", err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.MarshalWrite(w, overview)
}

// explain answers the text of 'runlens explain' for the API request in the body, as this server would answer it to the
// organization_id of the address.
func (o *operatorAPI) explain(w http.ResponseWriter, r *http.Request) {
	organization, err := schema.ParseOrganizationID(r.URL.Query().Get("organization_id"))
	if err != nil {
		http.Error(w, "organization_id "+err.Error(), http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(o.maxBodyBytes)))
	if err != nil {
		http.Error(w, "the body cannot be read, or is too long", http.StatusBadRequest)
		return
	}
	var asked query.Query
	if err = query.CheckSyntax(body); err == nil {
		asked, err = query.Parse(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), o.queryTimeout)
	defer cancel()
	select {
	case o.explaining <- struct{}{}:
		defer func() { <-o.explaining }()
	case <-ctx.Done():
		http.Error(w, "another question is being explained", http.StatusServiceUnavailable)
		return
	}
	x, err := o.served.explain(ctx, olap.Request{
		Access: schema.WholeOrganization(organization), Query: asked, QueryID: uuid.New(),
	})
	var refused *query.Error
	switch {
	case errors.As(err, &refused):
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case err != nil:
		o.failed(w, "explain", err)
		return
	}
	var text bytes.Buffer
	if err := shownExplanation(organization, asked, x).writeText(&text); err != nil {
		o.failed(w, "explain", err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(text.Bytes())
}

// failed keeps the cause for the log.
func (o *operatorAPI) failed(w http.ResponseWriter, doing string, err error) {
	o.logger.Warn("the admin address could not answer", "cause", failure.Of(doing, err).Error())
	http.Error(w, "the store did not answer in time, or failed: see the log", http.StatusServiceUnavailable)
}
