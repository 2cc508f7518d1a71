package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/http/auth"
)

const (
	// refusedFiles are requests that break one rule each.
	refusedFiles = "testdata/requests/invalid/*.json"
	// refusalPause keeps the refusals from taking the machine for themselves.
	refusalPause = 10 * time.Millisecond
)

// A refused is a request that breaks a rule, and its answer.
type refused struct {
	Rule, Code, Param, Body string
	Status                  int
	Malformed               bool // refused before authentication
	Base64                  []byte
}

func (r refused) body() []byte {
	if r.Base64 != nil {
		return r.Base64
	}
	return []byte(r.Body)
}

func readRefused() ([]refused, error) {
	files, err := filepath.Glob(refusedFiles)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no %s: run it from the top of the repository", refusedFiles)
	}
	all := make([]refused, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &all[i])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
}

// sendRefused sends requests that must be refused: with a key, without one, and with one that nobody has.
func (m *mixture) sendRefused(ctx, end context.Context, c *client, all []refused, random *rand.Rand) {
	keyless := newClient(m.target.server.Address, "")
	defer keyless.rest()
	defer c.rest()
	for end.Err() == nil {
		r := all[random.IntN(len(all))]
		wanted := refusal{Code: r.Code, Param: &r.Param}
		m.expect(ctx, c, r, wanted)
		if !r.Malformed {
			wanted = refusal{Code: "unauthorized"}
		}
		m.expect(ctx, keyless, r, wanted)
		key, _ := auth.NewKey()
		unknown := *keyless
		unknown.key = key
		m.expect(ctx, &unknown, r, wanted)
		harness.Pause(end, refusalPause)
	}
}

// expect sends a request and judges its refusal. 429 is one as well, where the code is not sent before authentication.
func (m *mixture) expect(ctx context.Context, c *client, r refused, wanted refusal) {
	a, err := c.query(ctx, r.body())
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		m.refusals.add("none")
		m.wrongRefusal.add("%s: %v", r.Rule, err)
		return
	}
	m.refusals.add(a.outcome())
	got, _ := a.refusal() // what has no envelope is a breach
	switch breach := a.breach(); {
	case breach != "":
		m.wrongRefusal.add("%s: %s", r.Rule, breach)
	case m.crashes.excuse(a), a.status == http.StatusTooManyRequests && !r.Malformed:
	case got.Code != wanted.Code, wanted.Param != nil && text(got.Param) != *wanted.Param:
		m.wrongRefusal.add("%s: %d %s at %q", r.Rule, a.status, got.Code, text(got.Param))
	}
}

func text(param *string) string {
	if param == nil {
		return ""
	}
	return *param
}

// sendMalformed sends over raw sockets what is hardly HTTP. It may be refused or get no answer, and is never answered
// outside the contract.
func (m *mixture) sendMalformed(ctx, end context.Context) {
	all := attacks()
	for n := 0; end.Err() == nil; n++ {
		attack := all[n%len(all)].with(fmt.Sprint(n))
		replies, err := exchange(ctx, dialTCP(m.target.server.Address), attack)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.wrongRefusal.add("%s: %v", attack.name, err)
		}
		if len(replies) == 0 {
			m.refusals.add("none to malformed HTTP")
		}
		for _, a := range replies {
			m.refusals.add(a.outcome())
			if breach := a.breach(); breach != "" {
				m.wrongRefusal.add("%s: %s", attack.name, breach)
			} else if a.status == http.StatusOK || a.status >= 500 && !m.crashes.excuse(a) {
				m.wrongRefusal.add("%s: %d %s", attack.name, a.status, a.body)
			}
		}
		harness.Pause(end, refusalPause)
	}
}
