package olap

import (
	"hash/maphash"
	"sync"

	"github.com/runlens/runlens/schema"
)

// maxRemembered bounds a memory: some hundred KiB.
const maxRemembered = 10_000

// A memory knows of queries what was true of them when they last ran. That
// is no promise for the next time, only a reason to expect it. The zero memory is empty. It is safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	queries map[uint64]struct{}
}

var memorySeed = maphash.MakeSeed()

// Two queries of one hash could only mislead the expectation.
func remembered(organization schema.OrganizationID, canonical []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(memorySeed)
	h.WriteString(string(organization))
	h.WriteByte(0)
	h.Write(canonical)
	return h.Sum64()
}

// note keeps whether it was true of a query.
func (m *memory) note(organization schema.OrganizationID, canonical []byte, was bool) {
	hash := remembered(organization, canonical)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !was:
		delete(m.queries, hash)
	case m.queries == nil || len(m.queries) >= maxRemembered:
		m.queries = map[uint64]struct{}{hash: {}}
	default:
		m.queries[hash] = struct{}{}
	}
}

// expected reports whether it was true of the query.
func (m *memory) expected(organization schema.OrganizationID, canonical []byte) bool {
	hash := remembered(organization, canonical)
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.queries[hash]
	return known
}
