package logs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"testing"

	"github.com/runlens/runlens/cmd/internal/logs"
)

// What several attempts have in common is said once.
func TestTextSaysEachLineOnce(t *testing.T) {
	refused := errors.New("\tdial: refused")
	err := fmt.Errorf("connect:\n%w", errors.Join(refused, errors.New("\tdial: late"), refused))
	if got, want := logs.Text(err), "connect:\n\tdial: refused\n\tdial: late"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Where a request fails, its address is said, and neither the settings nor the parameters of the statement; wherever
// in the error that is, in a line of the log as well.
func TestTextHasNoQueries(t *testing.T) {
	request := func(host string) error {
		return &url.Error{Op: "Post", URL: "http://" + host + "/?limit=0&param_person=ada%40example.com", Err: io.EOF}
	}
	for want, err := range map[string]error{
		`EOF`:                      io.EOF,
		`Post "http://a/": EOF`:    request("a"),
		`x: Post "http://a/": EOF`: fmt.Errorf("x: %w", request("a")),
		"Post \"http://a/\": EOF\ny: Post \"http://b/\": EOF": errors.Join(request("a"), fmt.Errorf("y: %w", request("b"))),
		`Get "http://a/page": EOF`:                            &url.Error{Op: "Get", URL: "http://a/page", Err: io.EOF},
	} {
		if got := logs.Text(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	logger := slog.New(logs.Bounded(slog.NewJSONHandler(&out, nil)))
	logger.Warn("failed", "error", fmt.Errorf("x: %w", request("a")))
	if bytes.Contains(out.Bytes(), []byte("person")) || !bytes.Contains(out.Bytes(), []byte("http://a/")) {
		t.Errorf("the log has %s", &out)
	}
}
