package olap

import (
	"context"
	"sync"
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

// A sizes remembers how many records organizations have.
type sizes struct {
	mu    sync.Mutex
	known map[sizeOf]size
}

type sizeOf struct {
	organization schema.OrganizationID
	source       string
}

type size struct {
	large bool
	at    time.Time
}

// large reports whether an organization has so many records in a source that they should be added up.
func (s *sizes) large(ctx context.Context, conn driver.Conn, of sizeOf, from uint64) (bool, error) {
	s.mu.Lock()
	last, known := s.known[of]
	s.mu.Unlock()
	if known && time.Since(last.at) < sizeAge {
		return last.large, nil
	}
	records, err := moment.SettledRecords(ctx, conn, of.organization, schema.SettledOf(of.source))
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSizes {
		s.known = map[sizeOf]size{}
	}
	s.known[of] = size{records >= from, time.Now()}
	return records >= from, nil
}
