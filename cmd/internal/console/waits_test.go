package console

import (
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
)

// A page can say what is waited for, and for how long.
func TestWaits(t *testing.T) {
	var w Waits
	if got := w.text(); got != "" {
		t.Errorf("nothing is waited for, but %q", got)
	}
	for want, cause := range map[string]error{
		"The key's rate of a minute is used up; the console asks again in 3": &client.Error{Status: 429,
			Code: client.CodeRateLimited, Reason: "rate"},
		"The server is busy with other questions; the console asks again in 3": &client.Error{Status: 429,
			Code: client.CodeRateLimited, Reason: "concurrency"},
		"The server does not answer; the console asks again in 3": &client.ConnectionError{},
		"The server fails, and is asked again in 3":               &client.Error{Status: 500, Code: "internal_error"},
	} {
		w.Began(client.Wait{For: time.Hour, Cause: cause})
		if got := w.text(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
