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
)

// start serves until the test ends and returns the base of its addresses, and what was logged.
func start(t *testing.T, config admin.Config) (base string, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	config.Logger = slog.New(slog.NewTextHandler(log, nil))
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

// With a token everything but the probes requires it.
func TestToken(t *testing.T) {
	base, _ := start(t, admin.Config{Listen: "127.0.0.1:0", Token: "a token of tests"})
	for path, without := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/metrics": 401, "/debug/pprof/": 401, "/status": 401, "/nothing": 401,
		"/private":            401,
		"/healthz/../metrics": 401,
	} {
		for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer a token of test", "Bearer  a token of tests",
			"Basic a token of tests"} {
			if status, _ := get(t, base+path, authorization); status != without {
				t.Errorf("%s with %q: %d, want %d", path, authorization, status, without)
			}
		}
	}
	if status, body := get(t, base+"/metrics", "Bearer a token of tests"); status != 200 ||
		!strings.Contains(body, "go_goroutines") {
		t.Errorf("with the token: %d", status)
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
		"own host":                {admin.Config{Listen: "127.0.0.1:0"}, 200, false},
		"own host, off":           {admin.Config{Listen: "127.0.0.1:0", Profiling: &off}, 404, false},
		"all hosts":               {admin.Config{Listen: "0.0.0.0:0"}, 404, true},
		"all hosts, on, no token": {admin.Config{Listen: "0.0.0.0:0", Profiling: &on}, 200, true},
		"all hosts, with a token": {admin.Config{Listen: "0.0.0.0:0", Token: "x"}, 404, false},
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

// What is private requires the token, or else a loopback address; there, pages of other sites are refused.
func TestPrivate(t *testing.T) {
	const token = "a token of tests"
	named := func(host string) map[string]string { return map[string]string{"Host": host} }
	for name, c := range map[string]struct {
		config admin.Config
		method string
		header map[string]string
		status int
	}{
		"own host":                  {admin.Config{Listen: "127.0.0.1:0"}, "GET", nil, 200},
		"own host, a change":        {admin.Config{Listen: "127.0.0.1:0"}, "POST", nil, 200},
		"own host, by name":         {admin.Config{Listen: "127.0.0.1:0"}, "GET", named("localhost:9"), 200},
		"own host, by another name": {admin.Config{Listen: "127.0.0.1:0"}, "GET", named("a.example:9"), 421},
		"own host, from a page": {admin.Config{Listen: "127.0.0.1:0"}, "POST",
			map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"own host, wrong token": {admin.Config{Listen: "127.0.0.1:0", Token: token}, "GET", nil, 401},
		"all hosts":             {admin.Config{Listen: "0.0.0.0:0"}, "GET", nil, 404},
		"all hosts, with a token": {admin.Config{Listen: "0.0.0.0:0", Token: token}, "GET",
			map[string]string{"Host": "a.example:9", "Authorization": "Bearer " + token}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			base, _ := start(t, c.config)
			request, err := http.NewRequest(c.method, base+"/private", nil)
			if err != nil {
				t.Fatal(err)
			}
			for key, value := range c.header {
				request.Header.Set(key, value)
			}
			request.Host = request.Header.Get("Host")
			request.Close = true
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != c.status || strings.Contains(string(body), "private") != (c.status == 200) {
				t.Errorf("%d %s %v, want %d", response.StatusCode, body, err, c.status)
			}
		})
	}
}
