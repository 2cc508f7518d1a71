package clickhouse

import (
	"testing"
	"time"
)

// LookForPoliciesEvery changes policiesAfter until the test ends.
func LookForPoliciesEvery(t *testing.T, after time.Duration) {
	before := policiesAfter
	policiesAfter = after
	t.Cleanup(func() { policiesAfter = before })
}
