package postgres

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/runlens/runlens/schema"
)

// A Key is a place in the order of changes of one kind: updated_at, id, organization. Rows without an
// updated_at come last. A row without an id or an organization has no key.
type Key struct {
	At           time.Time // to the microsecond, or one of those below; zero: before all
	OfRow        bool      // it is the key of a row, whose id may be an empty text; else it is before all rows of At
	ID           string
	Organization schema.OrganizationID
}

// Values of updated_at that are no usable instant. NegativeInfinity is before all that PostgreSQL has. TooLate are all
// instants from tooLate on, whose microseconds since 1970 may be more than an int64 holds.
var (
	NegativeInfinity = time.UnixMicro(math.MinInt64).UTC()
	TooLate          = time.UnixMicro(math.MaxInt64 - 2).UTC()
	Infinity         = time.UnixMicro(math.MaxInt64 - 1).UTC()
	Null             = time.UnixMicro(math.MaxInt64).UTC()
)

// timeless has the values that are no usable instant, in the order in which they are read.
var timeless = []time.Time{NegativeInfinity, TooLate, Infinity, Null}

// tooLate is for PostgreSQL, as a timestamptz, a timestamp or a date.
const tooLate = "'294247-01-01'"

// parseAt reads an updated_at as microsColumn writes it, nil for NULL.
func parseAt(text []byte) (time.Time, error) {
	switch string(text) {
	case "":
		return Null, nil
	case "infinity":
		return Infinity, nil
	case "-infinity":
		return NegativeInfinity, nil
	case "too late":
		return TooLate, nil
	}
	micros, err := strconv.ParseInt(string(text), 10, 64)
	return time.UnixMicro(micros).UTC(), err
}

// Timeless reports whether At is no usable instant.
func (k Key) Timeless() bool { return slices.ContainsFunc(timeless, k.At.Equal) }

// literal writes At for PostgreSQL.
func (k Key) literal() string {
	switch {
	case k.At.Equal(Infinity):
		return "infinity"
	case k.At.Equal(NegativeInfinity):
		return "-infinity"
	}
	at := k.At.UTC()
	year, era := at.Year(), ""
	if year < 1 { // Go counts a year 0
		year, era = 1-year, " BC"
	}
	return fmt.Sprintf("%04d-%s%s", year, at.Format("01-02 15:04:05.000000Z07:00"), era)
}
