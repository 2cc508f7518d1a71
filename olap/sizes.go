package olap

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/moment"
	"github.com/runlens/runlens/schema"
)

const (
	// addUpFrom is the number of settled records from which adding them up is quicker than reading
	// them: it costs about 20 ms whatever there is, and a scan as much for a million.
	addUpFrom = 500_000
	// sizeAge is how long a number is believed; it only decides between two ways to the same answer.
	sizeAge = time.Minute
	// maxSizes bounds the memory.
	maxSizes = 10_000
)

// A sizes remembers whether organizations have many records.
type sizes struct{ recent[recordsOf, bool] }

// large reports whether an organization has so many records in a source that they should be added up.
func (s *sizes) large(ctx context.Context, conn driver.Conn, of recordsOf, from uint64) (bool, error) {
	if large, known := s.get(of); known {
		return large, nil
	}
	records, err := moment.SettledRecords(ctx, conn, of.organization, schema.SettledOf(of.source))
	if err != nil {
		return false, err
	}
	large := records >= from
	s.put(of, large)
	return large, nil
}
