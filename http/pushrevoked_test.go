package httpapi_test

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
)

// A key that is revoked while a body of records arrives, after it was verified, stores none of them: a body may take a
// minute, and a revocation holds within 5 s (contract 2).
func TestPushWithAKeyThatIsRevokedMeanwhile(t *testing.T) {
	store := olaptest.OpenStore(t)
	stored, late := keys.NewStore(store.Conn()), time.Duration(0)
	verifier := auth.NewVerifier(stored, limit.NewWindow(1000, time.Minute),
		func() time.Time { return time.Now().Add(late) }, slog.New(slog.DiscardHandler))
	var revoked string
	s := serveOn(t, store, func(c *httpapi.Config) {
		c.Verifier = verifierFunc(func(
			ctx context.Context, credential auth.Credential, from netip.Addr,
		) (auth.Principal, error) {
			principal, err := verifier.Verify(ctx, credential, from)
			if credential.KeyID == revoked && late == 0 {
				_, failed := stored.Revoke(ctx, revoked)
				if late = 5 * time.Second; failed != nil {
					t.Error(failed)
				}
			}
			return principal, err
		})
	})
	key := s.pusher("acme")
	revoked = strings.Split(key, "_")[1]
	s.push(key, []byte(runLine("acme", 1)), "").want(t, 401, "unauthorized", "")
	if got := s.runs("acme"); got != "0" {
		t.Errorf("%s runs were stored with a key that had been revoked", got)
	}
}
