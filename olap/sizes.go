package olap

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const (
	// largeFrom is the number of records in the rollup from which adding them up is quicker than reading
	// them: it costs about 20 ms whatever there is, and a scan as much for a million.
	largeFrom = 500_000
	// sizeAge is how long a number is believed, which only decides between two ways to the same answer, and that there is
	// no conflict between attribution records.
	sizeAge = 10 * time.Second
	// maxSizes bounds the memory.
	maxSizes = 10_000
)

// A size is what decides how an organization's records in a source are read.
type size struct {
	large     bool // so many that they should be added up
	conflicts bool // some attribution records were stored with several contents or under several clocks
}

// A sizes remembers the sizes of organizations.
type sizes struct{ recent[recordsOf, size] }

// of returns the size of an organization in a source; large are records from so many on.
func (s *sizes) of(ctx context.Context, conn driver.Conn, of recordsOf, from uint64) (size, error) {
	if last, known := s.get(of); known {
		return last, nil
	}
	records, conflicts, err := snapshot.RollupRecords(ctx, conn, of.organization, schema.RollupOf(of.source))
	if err != nil {
		return size{}, err
	}
	now := size{records >= from, conflicts}
	s.put(of, now)
	return now, nil
}
