package clickhouse

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// LookForPoliciesEvery changes policiesAfter until the test ends.
func LookForPoliciesEvery(t *testing.T, after time.Duration) {
	before := policiesAfter
	policiesAfter = after
	t.Cleanup(func() { policiesAfter = before })
}

// WatchPolicies looks for policies of a server once more, and returns the error of the first look.
func WatchPolicies(ctx context.Context, s *Server, logger *slog.Logger) error {
	p, err := watchPolicies(ctx, s.Conn(), Config{Logger: logger})
	p.close()
	return err
}
