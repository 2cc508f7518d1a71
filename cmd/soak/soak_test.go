package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/query"
)

// generatorOf draws from the catalog as the API returns it.
func generatorOf(t *testing.T, client int) *generator {
	t.Helper()
	text, err := catalog.Document()
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Models []model }
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return newGenerator(1, client, document.Models, []string{"UTC", "Europe/Stockholm"}, date("2026-11-22"))
}

func TestQuestionsAreLegal(t *testing.T) {
	g := generatorOf(t, 1)
	for range 2000 {
		body := g.recent().body()
		if _, err := query.Parse(body); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	if body := largestBody(smallQuestion, 1<<20-1); len(body) < 8*50*200*12 || len(body) > 1<<20 {
		t.Errorf("the largest body has %d bytes", len(body))
	} else if _, err := query.Parse(body); err != nil {
		t.Error(err)
	}
}

func TestRangesKeepTheYears(t *testing.T) {
	g := generatorOf(t, 2)
	edges := map[string]bool{}
	for range 20_000 {
		r := g.rangeAnywhere()
		days := int(date(r.End).Sub(date(r.Start))/(24*time.Hour)) + 1
		if r.Start < firstDay || r.End > lastDay || days < 1 || days > maxDays {
			t.Fatalf("%+v has %d days", r, days)
		}
		edges[r.Start], edges[r.End] = true, true
	}
	for _, day := range []string{firstDay, lastDay} {
		if !edges[day] {
			t.Errorf("no range touches %s", day)
		}
	}
}

const envelope = `{"error":{"code":"rate_limited","message":"Too many requests","request_id":"a"}}`

// A good answer breaks nothing; every change of it does.
func TestBreaches(t *testing.T) {
	good := func() answer {
		return answer{status: 429, sentID: "a", body: []byte(envelope),
			header: http.Header{"X-Request-Id": {"a"}, "Content-Type": {"application/json"}, "Retry-After": {"60"}}}
	}
	if breach := good().breach(); breach != "" {
		t.Errorf("a good answer: %s", breach)
	}
	body := func(old, new string) func(*answer) {
		return func(a *answer) { a.body = []byte(strings.Replace(envelope, old, new, 1)) }
	}
	for name, change := range map[string]func(*answer){
		"another identifier":    func(a *answer) { a.sentID = "b" },
		"no identifier":         func(a *answer) { a.header.Del("X-Request-Id") },
		"two identifiers":       func(a *answer) { a.header.Add("X-Request-Id", "a") },
		"content type":          func(a *answer) { a.header.Set("Content-Type", "text/plain") },
		"Retry-After":           func(a *answer) { a.header.Set("Retry-After", "61") },
		"no Retry-After":        func(a *answer) { a.header.Del("Retry-After") },
		"another status":        func(a *answer) { a.status = 503 },
		"no envelope":           func(a *answer) { a.body = []byte("busy") },
		"a further property":    body(`"request_id"`, `"stack":"x","request_id"`),
		"a code of another":     body("rate_limited", "internal_error"),
		"another request_id":    body(`"a"`, `"b"`),
		"a place where none is": body(`"a"}`, `"a","param":"limit"}`),
	} {
		a := good()
		change(&a)
		if a.breach() == "" {
			t.Errorf("%s: nothing was found", name)
		}
	}
}

// refusalTo is a refusal of a request without a key.
func refusalTo(id string) answer {
	return answer{status: 401, header: http.Header{"X-Request-Id": {id}, "Content-Type": {"application/json"}},
		body: []byte(`{"error":{"code":"unauthorized","message":"Invalid API key","request_id":"` + id + `"}}`)}
}

func TestForeignAnswersAreSeen(t *testing.T) {
	outer, inner := identifiers("1")
	rows := refusalTo(outer)
	rows.status = 200
	failed := refusalTo(outer)
	failed.status = 500
	made := refusalTo("0b5e9d4e-3f0a-4f0e-9d53-111111111111")
	for _, c := range []struct {
		name                      string
		attack                    attack
		position                  int
		reply                     answer
		foreign, requests, shapes int
	}{
		{"its own", attack{}, 0, refusalTo(outer), 0, 0, 0},
		{"another one's", attack{}, 0, refusalTo("other"), 1, 0, 0},
		{"rows", attack{}, 0, rows, 1, 0, 0},
		{"the hidden request's, first", attack{}, 0, refusalTo(inner), 1, 0, 0},
		{"the hidden request's, second", attack{}, 1, refusalTo(inner), 0, 1, 0},
		{"a second request's", attack{pipelined: true}, 1, refusalTo(inner), 0, 0, 0},
		{"an identifier of the server's", attack{}, 0, made, 1, 0, 0},
		{"the same to what cannot be read", attack{unreadable: true}, 0, made, 0, 0, 0},
		{"a fault", attack{}, 0, failed, 0, 0, 1},
	} {
		g := &smuggling{way: way{direct: true}}
		g.judge(c.attack, c.position, c.reply, outer, inner)
		f, r, s := g.foreign.count(), g.requests.count(), g.shapes.count()
		if f != c.foreign || r != c.requests || s != c.shapes {
			t.Errorf("%s: %d foreign, %d read as requests, %d of another shape", c.name, f, r, s)
		}
	}
}

// Identifiers take the places of the marks without changing a length.
func TestAttacksKeepTheirLengths(t *testing.T) {
	names := map[string]bool{}
	for _, a := range attacks() {
		if names[a.name] {
			t.Errorf("two attacks are called %q", a.name)
		}
		names[a.name] = true
		before, after := strings.Join(a.segments, ""), strings.Join(a.with("a1234").segments, "")
		if len(before) != len(after) || strings.Contains(after, outerMark) || strings.Contains(after, innerMark) {
			t.Errorf("%s: %d bytes became %d", a.name, len(before), len(after))
		}
	}
}

func TestMissesFail(t *testing.T) {
	r := &report{}
	r.add(figure{what: "informs"})
	r.add(figure{what: "met", bound: "1", met: true})
	if r.missed() {
		t.Error("nothing was missed")
	}
	r.add(figure{what: "missed", bound: "1"})
	if !r.missed() {
		t.Error("a bound was missed")
	}
}
