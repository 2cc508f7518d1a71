package query

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A refused request of testdata/requests/invalid: one file a rule.
type refusedRequest struct {
	Rule      string
	Status    int
	Code      Code
	Param     string
	Malformed bool   // refused before authentication
	Body      string // or, where it is no text,
	Base64    []byte
}

func (r refusedRequest) bytes() []byte {
	if r.Base64 != nil {
		return r.Base64
	}
	return []byte(r.Body)
}

func corpus(t testing.TB) []refusedRequest {
	t.Helper()
	files, err := filepath.Glob("../../testdata/requests/invalid/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	requests := make([]refusedRequest, len(files))
	for i, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, &requests[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return requests
}

// decide judges a body as the server does.
func decide(body []byte) (Query, error) {
	if err := CheckSyntax(body); err != nil {
		return Query{}, err
	}
	return Parse(body)
}

func TestCorpusIsRefused(t *testing.T) {
	for _, c := range corpus(t) {
		t.Run(c.Rule, func(t *testing.T) {
			var refused *Error
			if err := CheckSyntax(c.bytes()); (err != nil) != c.Malformed {
				t.Errorf("before authentication: %v", err)
			}
			if _, err := decide(c.bytes()); !errors.As(err, &refused) {
				t.Fatalf("accepted: %v", err)
			}
			if refused.Code != c.Code || refused.Param != c.Param {
				t.Errorf("got %s at %q, want %s at %q (%s)", refused.Code, refused.Param, c.Code, c.Param, refused.Reason)
			}
		})
	}
}

// Whatever is sent, the parser ends with a query that keeps the bounds of spec section 8 or with an error that can be
// answered.
func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	for _, c := range corpus(f) {
		f.Add(c.bytes())
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := decide(body)
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) || refused.Code == "" {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if q.Model == nil || len(q.Metrics) < 1 || len(q.Metrics) > MaxMetrics || len(q.Dimensions) > MaxDimensions ||
			len(q.Filters) > MaxFilters ||
			len(q.Order) > MaxOrderTerms || q.Limit < 1 || q.Limit > MaxLimit || q.Range.StartUTC.After(q.Range.EndUTC) ||
			len(q.Range.Offsets) == 0 {
			t.Fatalf("%q was accepted as %+v", body, q)
		}
	})
}
