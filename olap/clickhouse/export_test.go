package clickhouse

import (
	"context"
	"log/slog"
	"net"
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

// ResolveBy has a resolver of names of servers until the test ends.
func ResolveBy(t *testing.T, resolver *net.Resolver) {
	elsewhere.Resolver = resolver
	t.Cleanup(func() { elsewhere.Resolver = nil })
}

// DialElsewhere is how servers that run elsewhere are connected to.
var DialElsewhere = dialElsewhere
