package olaptest

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Stamps move the clock by which a database stamps what is stored in it. Held.Shift does so for what statements read.
type Stamps struct {
	conn    driver.Conn
	columns []string // statements that define the columns that stamp, with the store's clock
	shifts  int
}

// StampsOf finds what stamps rows in the database of a connection: defaults of columns, and views, which are made to
// read by how much they are ahead.
func StampsOf(t Failer, conn driver.Conn) *Stamps {
	t.Helper()
	s := &Stamps{conn: conn}
	var views []string
	err := conn.QueryRow(context.Background(), `SELECT
		(SELECT groupArray('ALTER TABLE ' || name || ' MODIFY QUERY ' || as_select) FROM system.tables
			WHERE database = currentDatabase() AND as_select LIKE '%now64(3%'),
		(SELECT groupArray('ALTER TABLE ' || table || ' MODIFY COLUMN ' || name || ' DEFAULT ' || default_expression)
			FROM system.columns WHERE database = currentDatabase() AND default_expression LIKE '%now64(3%'
			AND table IN ('runs', 'attributions'))`).Scan(&views, &s.columns)
	if n := len(views) + len(s.columns); err == nil && n < 8 {
		err = fmt.Errorf("%d views and columns stamp what is stored", n)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.exec(t, "CREATE TABLE stamp_shift (n UInt64, ms Int64) ENGINE = MergeTree ORDER BY n")
	s.Shift(t, 0)
	for _, view := range views {
		s.exec(t, clock.ReplaceAllString(view, "($0 + toIntervalMillisecond((SELECT argMax(ms, n) FROM stamp_shift)))"))
	}
	return s
}

// Shift makes stamps so much ahead of the store's clock, to the millisecond.
func (s *Stamps) Shift(t Failer, by time.Duration) {
	t.Helper()
	s.shifts++
	s.exec(t, fmt.Sprintf("INSERT INTO stamp_shift VALUES (%d, %d)", s.shifts, by.Milliseconds()))
	for _, statement := range s.columns {
		s.exec(t, shifted(statement, by.Milliseconds()))
	}
}

func (s *Stamps) exec(t Failer, statement string) {
	t.Helper()
	if err := s.conn.Exec(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}
