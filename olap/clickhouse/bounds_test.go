package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// A query that needs more than the bound fails alone. This one needs 2.4 GB at least, which the machine has.
func TestMemoryIsBounded(t *testing.T) {
	const memoryLimitExceeded = 241
	c := config(dataDir(t))
	c.EngineMemoryBytes = 1 << 30
	s := open(t, c)
	err := s.Conn().Exec(context.Background(), "SELECT length(groupArray(number)) FROM numbers(300000000)")
	var exception *driver.Exception
	if !errors.As(err, &exception) || exception.Code != memoryLimitExceeded {
		t.Errorf("a query over the bound: %v, want code %d", err, memoryLimitExceeded)
	}
	if !works(s) {
		t.Error("the engine does not answer any more")
	}
}

// The largest valid query carries 8 filters of 50 values of 200 characters of up to four bytes each, a filter
// on agent_id perhaps twice (as UUID and as slug); the driver sends them percent-encoded in the address.
func TestLargestParametersFit(t *testing.T) {
	s := open(t, config(dataDir(t)))
	const values, length = 2 * 8, 50 * 200
	value := strings.Repeat("\U0001F600", length)
	sum, args := "0", []any{}
	for i := range values {
		name := fmt.Sprintf("v%d", i)
		sum += fmt.Sprintf(" + lengthUTF8({%s:String})", name)
		args = append(args, driver.Named(name, value))
	}
	var n uint64
	if err := s.Conn().QueryRow(context.Background(), "SELECT "+sum, args...).Scan(&n); err != nil || n != values*length {
		t.Errorf("%d characters arrived (%v), want %d", n, err, values*length)
	}
}

// An acknowledged insert is stored, never waiting in a buffer.
func TestInsertsAreSynchronous(t *testing.T) {
	s := open(t, config(dataDir(t)))
	var asynchronous bool
	if err := s.Conn().QueryRow(context.Background(),
		"SELECT getSetting('async_insert')").Scan(&asynchronous); err != nil || asynchronous {
		t.Errorf("async_insert is %v (%v), want false", asynchronous, err)
	}
}

// Statements mean the same on the embedded engine and on a server.
func TestEngineTakesNoLocalDialect(t *testing.T) {
	s := open(t, config(dataDir(t)))
	if err := s.Conn().Exec(context.Background(), "1 + 1"); err == nil {
		t.Error("an expression passes for a statement")
	}
}

func TestEngineKeepsTimeInUTC(t *testing.T) {
	t.Setenv("TZ", "Asia/Tokyo")
	s := open(t, config(dataDir(t)))
	var zone string
	if err := s.Conn().QueryRow(context.Background(), "SELECT timezone()").Scan(&zone); err != nil ||
		zone != "UTC" && zone != "Etc/UTC" {
		t.Errorf("time zone %q (%v), want UTC", zone, err)
	}
}

// Threads of connections are bounded: one that is closed leaves its thread to the next ones. What an engine may have of
// memory is not used up by other processes of its control group.
func TestSettingsOfAnEngine(t *testing.T) {
	s := open(t, config(dataDir(t)))
	for name, want := range map[string]string{"max_connections": "1024", "memory_worker_use_cgroup": "0"} {
		var value string
		if err := s.Conn().QueryRow(context.Background(),
			"SELECT value FROM system.server_settings WHERE name = $1", name).Scan(&value); err != nil || value != want {
			t.Errorf("%s is %q, want %s: %v", name, value, want, err)
		}
	}
}
