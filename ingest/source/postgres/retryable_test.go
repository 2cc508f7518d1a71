package postgres_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runlens/runlens/ingest/source/postgres"
)

// A source that is short of something is waited for, as one that is away is; one that refuses is not.
func TestWhatPassesByItself(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"53100": true, // disk full
		"53200": true, // out of memory
		"53300": true, // too many connections
		"53400": true, // temp_file_limit
		"57P01": true, // shut down
		"25P03": true, // idle in transaction for too long
		"28P01": false, "3D000": false, "42501": false, "42703": false, "42P01": false,
	} {
		if got := postgres.Retryable(fmt.Errorf("read: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: tried again: %t, want %t", code, got, want)
		}
	}
	// The name of a container goes while it is stopped.
	gone := fmt.Errorf("read: %w", &net.DNSError{Err: "no such host", Name: "postgres", IsNotFound: true})
	if !postgres.Retryable(gone) || !postgres.UnknownHost(gone) {
		t.Errorf("a host without a name: tried again: %t, known as such: %t", postgres.Retryable(gone),
			postgres.UnknownHost(gone))
	}
	// PgBouncer's errors have one code.
	for text, want := range map[string]bool{
		"query_wait_timeout":                         true,
		"server conn crashed?":                       true,
		"unsupported startup parameter: search_path": false,
		"no such database: production":               false,
		"no such user: reader":                       false,
		`"trust" authentication failed`:              false,
	} {
		if got := postgres.Retryable(&pgconn.PgError{Code: "08P01", Message: text}); got != want {
			t.Errorf("%s: tried again: %t, want %t", text, got, want)
		}
	}
}
