package failure_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/failure"
)

// Where a connection is taken and nothing comes on it, there is too much to do; where none is taken, something is wrong
// (contract 4.21).
func TestSilenceIsOverload(t *testing.T) {
	t.Parallel()
	// The kernel takes connections for it.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for _, protocol := range []clickhouse.Protocol{clickhouse.HTTP, clickhouse.Native} {
		for address, want := range map[string]bool{silent.Addr().String(): true, gone.Addr().String(): false} {
			conn, err := clickhouse.Open(&clickhouse.Options{
				Addr: []string{address}, Protocol: protocol, DialTimeout: 2 * time.Second, ReadTimeout: time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			err = conn.Exec(t.Context(), "SELECT 1")
			if got := failure.OfStatement(t.Context(), began, "ask", err); errors.Is(got, failure.ErrOverloaded) != want {
				t.Errorf("%s, silent: %t: %v", protocol, want, got)
			}
			conn.Close()
		}
	}
}

// What ClickHouse refuses its user, as after a rotation of the password, is said in words, over the native protocol
// too, where exceptions have no name, and without what the statement asks.
func TestRefusalsInWords(t *testing.T) {
	t.Parallel()
	const forbidden = "ask: the profile of ClickHouse's user forbids the setting "
	for message, want := range map[string]string{
		"497 ada@x.example": "ask: ClickHouse refuses its user a right (exception 497 ACCESS_DENIED); " +
			"'runlens doctor' says which",
		"081 Database ada does not exist": "ask: the database does not exist (exception 81 UNKNOWN_DATABASE); " +
			"create it, or GRANT CREATE DATABASE to the user",
		"516 ada@x.example": "ask: ClickHouse refuses the user's name or password (exception 516 AUTHENTICATION_FAILED)",
		"452 Setting max_threads should not be changed": forbidden + "max_threads that statements are sent with " +
			"(exception 452)",
		"452 Setting max_threads shouldn't be less than 2": forbidden + "max_threads that statements are sent with " +
			"(exception 452)",
		"164 Cannot modify 'limit' setting in readonly mode": forbidden + "limit that statements are sent with " +
			"(exception 164)",
		"164 ada@x.example may only read": "ask: ClickHouse exception 164 READONLY",
	} {
		code, _ := strconv.Atoi(message[:3])
		err := failure.Of("ask", &clickhouse.Exception{Code: int32(code), Message: message[4:] + ". (READONLY)"})
		if err.Error() != want {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// What ClickHouse refuses because of others is overload, and what it takes too long or too much for is too expensive;
// each other exception keeps its code.
func TestReasons(t *testing.T) {
	t.Parallel()
	for code, want := range map[int32]error{
		202: failure.ErrOverloaded, 439: failure.ErrOverloaded, 745: failure.ErrOverloaded,
		158: failure.ErrTooExpensive, 159: failure.ErrTooExpensive, 160: failure.ErrTooExpensive,
		307: failure.ErrTooExpensive, 396: failure.ErrTooExpensive, 60: nil, 252: nil, 516: nil,
	} {
		err := failure.Of("ask", &clickhouse.Exception{Code: code, Message: "ada@x.example"})
		for _, reason := range []error{failure.ErrOverloaded, failure.ErrTooExpensive} {
			if got := errors.Is(err, reason); got != (reason == want) {
				t.Errorf("%d: %v, which is %v: %t", code, err, reason, got)
			}
		}
		if got := failure.CodeOf(err); want != failure.ErrOverloaded && got != code || strings.Contains(err.Error(), "ada") {
			t.Errorf("%d: %v with the code %d", code, err, got)
		}
	}
}

// Too little memory for everything at once is overload, and is said with what to change.
func TestMemoryInWords(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]error{
		"(total) memory limit exceeded: would use 96.01 MiB, maximum: 95.37 MiB": failure.ErrOverloaded,
		"Query memory limit exceeded: would use 4.00 GiB, maximum: 4.00 GiB":     failure.ErrTooExpensive,
	} {
		err := failure.Of("ask", &clickhouse.Exception{Code: 241, Message: message + ". (MEMORY_LIMIT_EXCEEDED)"})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", message, err, want)
		}
		if said := strings.Contains(err.Error(), "RUNLENS_ENGINE_MEMORY"); said != (want == failure.ErrOverloaded) {
			t.Errorf("%s: %v, which says what to change: %t", message, err, said)
		}
	}
}
