package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
)

const unknownProperty = `{"model":"agent_runs","nonsense":1}`

// Spec 5.3 and section 7: every credential that is not valid has the same answer.
func TestUnauthorized(t *testing.T) {
	s := serve(t, nil)
	good := s.reader()
	revoked := s.reader()
	if _, err := s.keys.Revoke(context.Background(), strings.Split(revoked, "_")[1]); err != nil {
		t.Fatal(err)
	}
	unknown, _ := auth.NewKey()
	bodies := map[string]bool{}
	for name, authorization := range map[string][]string{
		"missing":        {},
		"empty":          {""},
		"no scheme":      {good},
		"another scheme": {"Basic " + good},
		"malformed":      {"Bearer rl_x"},
		"unknown":        {"Bearer " + unknown},
		"revoked":        {"Bearer " + revoked},
		"two headers":    {"Bearer " + good, "Bearer " + good},
		"data after it":  {"Bearer " + good + " x"},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"x-request-id", "same"}
			for _, a := range authorization {
				headers = append(headers, "Authorization", a)
			}
			for _, a := range []answer{s.post("", valid, headers...), s.get(catalogPath, "", headers...)} {
				a.want(t, 401, "unauthorized", "")
				if a.Error.Message != "Invalid API key" || a.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s, WWW-Authenticate %q", a.body, a.header.Get("WWW-Authenticate"))
				}
				bodies[string(a.body)] = true
			}
		})
	}
	if len(bodies) != 1 {
		t.Errorf("the outcomes can be distinguished: %v", bodies)
	}
	s.post("", valid, "Authorization", "bearer  "+good).want(t, 200, "", "")
}

// Spec 5.2: credentials, then the rate, then the scope, then (contract 4.18) the query's grammar.
func TestOrderOfChecks(t *testing.T) {
	s := serve(t, func(c *httpapi.Config) { c.RatePerMinute = 2 })
	without := s.key("acme")
	s.post("", unknownProperty).want(t, 401, "unauthorized", "")
	s.post(without, unknownProperty).want(t, 403, "insufficient_scope", "")
	s.get(catalogPath, without).want(t, 403, "insufficient_scope", "")
	s.post(without, unknownProperty).want(t, 429, "rate_limited", "")
	s.get(catalogPath, without).want(t, 429, "rate_limited", "")
	s.post(without, "{").want(t, 400, "invalid_query", "")
	s.post(s.reader(), unknownProperty).want(t, 400, "invalid_query", "nonsense")
}

// Spec section 8: 60 requests a minute and key, all endpoints together; the answer has the true wait.
func TestRateLimit(t *testing.T) {
	s := serve(t, func(c *httpapi.Config) { c.RatePerMinute = 3 })
	key, other := s.reader(), s.reader()
	for i, a := range []answer{s.get(catalogPath, key), s.post(key, valid), s.get(catalogPath, key)} {
		if a.status != 200 || a.header.Get("RateLimit-Policy") != `"per-key";q=3;w=60` ||
			!strings.HasPrefix(a.header.Get("RateLimit"), fmt.Sprintf(`"per-key";r=%d;t=`, 2-i)) {
			t.Errorf("request %d: %d, %v", i, a.status, a.header)
		}
	}
	a := s.post(key, valid)
	a.want(t, 429, "rate_limited", "")
	if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 ||
		!strings.Contains(a.Error.Message, "Too many requests") {
		t.Errorf("Retry-After %q, %q", a.header.Get("Retry-After"), a.Error.Message)
	}
	s.get(catalogPath, other).want(t, 200, "", "")
	// Malformed bodies are refused before the rate is read (spec 5.2).
	s.post(key, "{").want(t, 400, "invalid_query", "")
}

// Spec 5.3: unknown keys draw on a global budget, malformed ones on nothing, established ones are unaffected.
func TestVerificationBudget(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, func(c *httpapi.Config) {
		c.Verifier = auth.NewVerifier(keys.NewStore(store.Conn()), limit.NewWindow(2, time.Minute), time.Now,
			slog.New(slog.DiscardHandler))
	})
	key := s.reader()
	s.get(catalogPath, key).want(t, 200, "", "") // the first of two
	for range 10 {
		s.get(catalogPath, "rl_malformed").want(t, 401, "unauthorized", "")
	}
	unknown, _ := auth.NewKey()
	s.get(catalogPath, unknown).want(t, 401, "unauthorized", "") // the second
	a := s.get(catalogPath, unknown)
	a.want(t, 429, "rate_limited", "")
	if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	s.get(catalogPath, key).want(t, 200, "", "")
}

// Spec 2.1 to 2.8 by their tables.
func TestCatalog(t *testing.T) {
	s := serve(t, nil)
	a := s.get(catalogPath, s.reader())
	a.want(t, 200, "", "")
	var lines []string
	for _, m := range decode[struct {
		Models []struct {
			Name, EventClock string
			Metrics          []struct {
				Name, Type string
				Additive   bool
				Deprecated any
			}
			Dimensions []struct {
				Name, Type string
				Companions []struct{ Name, Type string }
				Deprecated any
			}
		}
	}](t, a.body).Models {
		lines = append(lines, m.Name+" by "+m.EventClock)
		for _, metric := range m.Metrics {
			lines = append(lines, fmt.Sprint(metric.Name, " ", metric.Type, " ", metric.Additive, " ", metric.Deprecated))
		}
		for _, d := range m.Dimensions {
			lines = append(lines, fmt.Sprint(d.Name, " ", d.Type, " ", d.Companions, " ", d.Deprecated))
		}
	}
	const want = `agent_runs by createdAt
run_count number true <nil>
completed_run_count number true <nil>
failed_run_count number true <nil>
cancelled_run_count number true <nil>
active_run_count number true <nil>
run_success_rate number false <nil>
unique_initiator_count number false <nil>
agent_id string [{agent_name string}] <nil>
user_identifier string [{user_name string}] <nil>
user_type string [] <nil>
day date [] <nil>
agent_user_activity by occurredAt
attributed_run_count number false <nil>
initiated_run_count number false <nil>
associated_run_count number false <nil>
interacted_run_count number false <nil>
interaction_count number true <nil>
completed_attributed_run_count number false <nil>
failed_attributed_run_count number false <nil>
cancelled_attributed_run_count number false <nil>
active_attributed_run_count number false <nil>
agent_id string [{agent_name string}] <nil>
user_identifier string [{user_name string}] <nil>
user_domain string [] <nil>
activity_type string [] <nil>
run_initiation_type string [] <nil>
source string [] <nil>
day date [] <nil>`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("%v", a.header)
	}
}

// Whose rows are read follows from the key alone.
func TestKeysSeeTheirOrganizationOnly(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, nil)
	at := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	olaptest.Load(t, store.Conn(), olaptest.Records{Runs: []olaptest.Run{
		{Organization: "acme", ID: olaptest.ShortID(1), CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: "FAILED"},
		{Organization: "globex", ID: olaptest.ShortID(1), CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: "FAILED"},
		{Organization: "globex", ID: olaptest.ShortID(2), CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: "FAILED"},
	}})
	for organization, want := range map[string]string{"acme": "[[1]]", "globex": "[[2]]", "umbrella": "[[0]]"} {
		a := s.post(s.key(organization, auth.ScopeAnalyticsRead), valid)
		if rows := fmt.Sprint(decode[struct{ Rows [][]int }](t, a.body).Rows); rows != want {
			t.Errorf("%s sees %s, want %s", organization, rows, want)
		}
	}
}

type verifierFunc func(context.Context, auth.Credential, netip.Addr) (auth.Principal, error)

func (f verifierFunc) Verify(ctx context.Context, c auth.Credential, from netip.Addr) (auth.Principal, error) {
	return f(ctx, c, from)
}

// A key that cannot be looked up because ClickHouse has too much to do is told to come back (contract 4.21); any other
// failure is a fault.
func TestKeysThatCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	for fault, want := range map[error]int{clickhouse.ErrAcquireConnTimeout: 429, io.ErrUnexpectedEOF: 500} {
		s := serve(t, func(c *httpapi.Config) {
			c.Verifier = verifierFunc(func(context.Context, auth.Credential, netip.Addr) (auth.Principal, error) {
				// As the driver and net/http say it.
				return auth.Principal{}, fmt.Errorf("keys: look up: %w", &url.Error{Op: "Post", URL: "http://a?secret", Err: fault})
			})
		})
		a := s.post(s.reader(), valid)
		a.want(t, want, map[int]string{429: "rate_limited", 500: "internal_error"}[want], "")
		if after := a.header.Get("Retry-After"); (after != "") != (want == 429) {
			t.Errorf("%v: Retry-After %q", fault, after)
		}
		if strings.Contains(s.log.String(), "secret") {
			t.Errorf("the log has what was asked for:\n%s", s.log)
		}
	}
}
