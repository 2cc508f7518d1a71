package main

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

// An organization that was moved to a cell that the server's file does not name is explained by no other cell, and its
// questions are counted in none.
func TestOrganizationInACellThatIsNotNamed(t *testing.T) {
	var log bytes.Buffer
	all := servedCells{[]*cell{{}}, func(schema.OrganizationID) int { return -1 }}
	all.record(usage.Entry{OrganizationID: "moved"})
	o := operatorAPI{served: all, queryTimeout: time.Minute, maxBodyBytes: 1 << 20,
		logger: slog.New(slog.NewTextHandler(&log, nil))}
	answer := httptest.NewRecorder()
	o.private()["POST /explain"].ServeHTTP(answer,
		httptest.NewRequest("POST", "/explain?organization_id=moved", strings.NewReader(countRuns)))
	if answer.Code != 503 || !strings.Contains(log.String(), "the file of cells") {
		t.Errorf("%d %s, log %s", answer.Code, answer.Body, log.String())
	}
}
