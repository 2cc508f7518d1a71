package main

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"
)

// A narrowAsker draws questions and sends each from several keys at the same time.
type narrowAsker struct {
	*narrowTrial
	questions *questioner
}

func (a *narrowAsker) ask(ctx context.Context) {
	q := a.questions.draw(oneOf(a.questions, []string{wantAggregates, wantRows, wantBase, wantAny}), mainOrganization,
		a.questions.random.IntN(2) == 0)
	if a.questions.random.IntN(2) == 0 {
		a.questions.span(&q, longDays)
	}
	keys := some(a.questions, a.keys, keysAtOnce, keysAtOnce)
	wanted := make([][][]any, len(keys))
	for i, k := range keys {
		wanted[i] = a.wanted(k, q)
	}
	server := oneOf(a.questions, a.servers) // the same for all, so that they could share what they must not
	for range narrowedRepeats {
		var asking sync.WaitGroup
		for i, k := range keys {
			foreign := oneOf(a.questions, a.keys)
			asking.Go(func() { a.follow(ctx, server, k, foreign, q, wanted[i]) })
		}
		asking.Wait()
	}
}

// wanted are the rows of all pages that a key should be answered.
func (a *narrowAsker) wanted(k narrowKey, q question) [][]any {
	if a.refuses(k, q) != "" {
		return nil
	}
	asked := q.asOracle()
	asked.Key = k.sees
	want, err := a.author.truth.Answer(mainOrganization, asked)
	if err != nil {
		a.unanswered.add("the oracle: %v", err)
	}
	if !q.pages() && len(q.Dimensions) > 0 {
		want = want[:min(len(want), q.rows())]
	}
	return want
}

// follow reads the pages of an answer, those after the first one from any server. Before the second one, another key
// tries the cursor.
func (a *narrowAsker) follow(
	ctx context.Context, server *queriedServer, k, foreign narrowKey, q question, want [][]any,
) {
	for n := range mostPages {
		answered, err := patiently(ctx, server.clients[k.name], q)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.unanswered.add("%v: %s", err, shorten(q))
			return
		}
		a.answers.Add(1)
		if refused := a.refuses(k, q); refused != "" {
			a.refusals.Add(1)
			a.expectRefusal(answered, 403, refused, k, q)
			return
		}
		var p page
		if err := json.Unmarshal(answered.body, &p); err != nil || answered.status != 200 {
			a.unanswered.add("%s: %d %s: %s", k.name, answered.status, answered.body, shorten(q))
			return
		}
		expected := want[:min(len(want), q.rows())]
		want = want[len(expected):]
		if wrong := difference(p.Rows, expected); wrong != "" || (p.Cursor != nil) != (len(want) > 0) {
			a.different.add("%s %q, page %d: %s, %d further rows: %s", k.name, k.flags, n, wrong, len(want), shorten(q))
			return
		}
		if p.Cursor == nil {
			return
		}
		q.Cursor, server = *p.Cursor, a.servers[n%len(a.servers)]
		if n == 0 && a.refuses(foreign, q) == "" && !reflect.DeepEqual(foreign.sees, k.sees) {
			a.crossings.Add(1)
			if tried, err := patiently(ctx, server.clients[foreign.name], q); err == nil {
				a.expectRefusal(tried, 400, "invalid_cursor", foreign, q)
			}
		}
	}
}

// refuses is the code with which a key is refused a question; empty for none.
func (a *narrowAsker) refuses(k narrowKey, q question) string {
	zone, err := time.LoadLocation(q.Range.Timezone)
	if err != nil {
		return err.Error()
	}
	start, err := time.ParseInLocation(time.DateOnly, q.Range.Start, zone)
	if err != nil {
		return err.Error()
	}
	const person = "user_identifier"
	ofPerson := func(f filter) bool { return f.Member == person }
	if k.days > 0 && start.Before(a.author.today.AddDate(0, 0, -k.days)) || k.sees.MinPeople > 0 &&
		(slices.Contains(q.Dimensions, person) || slices.ContainsFunc(q.Filters, ofPerson)) {
		return "restricted_key"
	}
	return ""
}

func (a *narrowAsker) expectRefusal(got answer, status int, code string, k narrowKey, q question) {
	var e struct{ Error refusal }
	if err := json.Unmarshal(got.body, &e); err != nil || got.status != status || e.Error.Code != code {
		a.different.add("%s %q: %d %.300s, want %d %s: %s", k.name, k.flags, got.status, got.body, status, code, shorten(q))
	}
}
