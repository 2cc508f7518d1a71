package console

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/runlens/runlens/http/client"
)

// Waits says what the console's client waits for. The zero value waits for nothing.
type Waits struct {
	mu    sync.Mutex
	until time.Time
	why   string
}

// Began is for the client's OnWait.
func (w *Waits) Began(wait client.Wait) {
	why := "The server fails, and is asked again"
	var answered *client.Error
	var lost *client.ConnectionError
	switch {
	case errors.As(wait.Cause, &answered) && answered.Code == client.CodeRateLimited && answered.Reason == "rate":
		why = "The key's rate of a minute is used up; the console asks again"
	case errors.As(wait.Cause, &answered) && answered.Code == client.CodeRateLimited:
		why = "The server is busy with other questions; the console asks again"
	case errors.As(wait.Cause, &lost):
		why = "The server does not answer; the console asks again"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until, w.why = time.Now().Add(wait.For), why
}

// text is one sentence; empty while nothing is waited for.
func (w *Waits) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left := time.Until(w.until); left > 0 {
		return fmt.Sprintf("%s in %d s.", w.why, int(left.Seconds())+1)
	}
	return ""
}

func (c *Console) waiting(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if c.Waits != nil {
		fmt.Fprint(w, c.Waits.text())
	}
}
