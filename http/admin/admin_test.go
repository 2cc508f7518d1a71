package admin_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/runlens/runlens/http/admin"
	"github.com/runlens/runlens/http/conns"
)

// start serves until the test ends and returns the base of its addresses, and what was logged.
func start(t *testing.T, config admin.Config) (base string, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	config.Logger, config.Caps = slog.New(slog.NewTextHandler(log, nil)), conns.Caps{All: 64, PerAddress: 64}
	s, err := admin.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	s.Start(admin.Content{
		Ready: func(context.Context) error { return nil },
		More:  map[string]http.Handler{"GET /status": http.NotFoundHandler()},
		Private: map[string]http.Handler{"/private": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("private"))
		})},
	}, func(err error) { ended <- err })
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	_, port, _ := strings.Cut(s.Address()[strings.LastIndex(s.Address(), ":"):], ":")
	return "http://127.0.0.1:" + port, log
}

func get(t *testing.T, url string, authorization ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	if len(authorization) > 0 {
		request.Header.Set("Authorization", authorization[0])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// Profiles and what is private require the token always, everything but the probes where it is for all. An address
// without a token refuses them to everybody.
func TestToken(t *testing.T) {
	for _, config := range []admin.Config{
		{Token: "a token of tests"}, {Token: "a token of tests", ForAll: true}, {},
	} {
		tokenOf(t, config)
	}
}

func tokenOf(t *testing.T, config admin.Config) {
	t.Helper()
	config.Listen = "127.0.0.1:0"
	base, _ := start(t, config)
	closed, missing := 200, 404
	if config.ForAll {
		closed, missing = 401, 401
	}
	for path, without := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/metrics": closed, "/status": missing, "/nothing": missing,
		"/debug/pprof/": 401, "/debug/pprof/heap": 401, "/debug/pprof/profile": 401, "/private": 401,
		"//debug/pprof/heap": 401, "/healthz/../private": 401,
		"/healthz/../metrics": closed,
	} {
		for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer a token of test", "Bearer  a token of tests",
			"Basic a token of tests"} {
			if status, _ := get(t, base+path, authorization); status != without {
				t.Errorf("%+v: %s with %q: %d, want %d", config, path, authorization, status, without)
			}
		}
	}
	for path, says := range map[string]string{
		"/metrics": "go_goroutines", "/private": "private", "/debug/pprof/": "heap",
	} {
		status, body := get(t, base+path, "Bearer a token of tests")
		if config.Token != "" && (status != 200 || !strings.Contains(body, says)) {
			t.Errorf("%+v: %s with the token: %d", config, path, status)
		}
	}
}

// Profiles are for the own host, unless a flag says otherwise; the command line is for nobody. A warning says
// that everybody may read an address.
func TestProfilingAndExposure(t *testing.T) {
	on, off := true, false
	for name, c := range map[string]struct {
		config admin.Config
		status int
		warns  bool
	}{
		"own host":                      {admin.Config{Listen: "127.0.0.1:0", Token: "x"}, 200, false},
		"own host, off":                 {admin.Config{Listen: "127.0.0.1:0", Token: "x", Profiling: &off}, 404, false},
		"all hosts":                     {admin.Config{Listen: "0.0.0.0:0", Token: "x"}, 404, true},
		"all hosts, on":                 {admin.Config{Listen: "0.0.0.0:0", Token: "x", Profiling: &on}, 200, true},
		"all hosts, with a token of it": {admin.Config{Listen: "0.0.0.0:0", Token: "x", ForAll: true}, 404, false},
	} {
		t.Run(name, func(t *testing.T) {
			base, log := start(t, c.config)
			for _, profile := range []string{"", "heap"} {
				if status, _ := get(t, base+"/debug/pprof/"+profile, "Bearer x"); status != c.status {
					t.Errorf("/debug/pprof/%s: %d, want %d", profile, status, c.status)
				}
			}
			status, body := get(t, base+"/debug/pprof/cmdline", "Bearer x")
			if status != 404 || strings.Contains(body, os.Args[0]) {
				t.Errorf("the command line: %d %s", status, body)
			}
			if strings.Contains(log.String(), "requires no token") != c.warns {
				t.Errorf("warns: %v, want %v\n%s", !c.warns, c.warns, log)
			}
		})
	}
}

// A page of another site, whose name leads to a loopback address, reads nothing there: neither from an address that
// only this machine reaches nor from one that others reach. Requests with the token are nobody's page.
func TestNamesOfOtherSites(t *testing.T) {
	const token = "a token of tests"
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		base, _ := start(t, admin.Config{Listen: listen, Token: token, Profiling: new(true)})
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/status", "/private", "/debug/pprof/heap"} {
			for host, foreign := range map[string]bool{
				"a.example": true, "a.example:9090": true, "localhost.a.example": true, "127.0.0.1.a.example:80": true, "1": true,
				"localhost": false, "localhost:9": false, "127.0.0.1": false, "[::1]:9": false, "[::1]": false, "10.0.0.7:9": false,
			} {
				request, err := http.NewRequest(http.MethodGet, base+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Host, request.Close = host, true
				for range 2 {
					response, err := http.DefaultClient.Do(request)
					if err != nil {
						t.Fatal(err)
					}
					response.Body.Close()
					authorized := request.Header.Get("Authorization") != ""
					if refused := response.StatusCode == http.StatusMisdirectedRequest; refused != (foreign && !authorized) {
						t.Errorf("%s of %s at %s, with the token %v: %d", path, host, listen, authorized, response.StatusCode)
					}
					request.Header.Set("Authorization", "Bearer "+token)
				}
			}
		}
	}
}
