package daterange

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io/fs"
	"math"
	"slices"
	"sync"
	"time"
)

//go:generate go run ./genzones -from /usr/share/zoneinfo

// zonesZip holds the compiled data of exactly the canonical zones of contract 4.9: the names of zone.tab, UTC and
// Etc/GMT±N. A name that is not in it is a legacy alias or invalid. Embedding it, instead of that of the operating
// system, gives every server of a deployment the same days. zones.txt lists the same names under their tzdata release,
// for people to review.
//
//go:embed zones.zip
var zonesZip []byte

var archive = sync.OnceValue(func() *zip.Reader {
	archive, err := zip.NewReader(bytes.NewReader(zonesZip), int64(len(zonesZip)))
	if err != nil {
		panic("daterange: embedded zones: " + err.Error())
	}
	return archive
})

// Zones are the canonical zones by name, sorted.
func Zones() (names []string) {
	for _, f := range archive().File {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

var loaded sync.Map // of name to *time.Location; bounded by the number of canonical zones

func loadZone(name string) (*time.Location, bool) {
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), true
	}
	data, err := fs.ReadFile(archive(), name)
	if err != nil {
		return nil, false
	}
	zone, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		panic("daterange: embedded zone " + name + ": " + err.Error())
	}
	loaded.Store(name, zone)
	return zone, true
}

// never is the end of an offset that stays for ever.
const never = math.MaxInt64

// offsetAt returns a zone's offset at an instant, in seconds ahead of UTC, and a later instant until which it stays
// (exclusive). Instants are seconds since 1970-01-01 UTC.
//
// Go's bound is too early by a day after the last change of a leap year: it ends a year after 365 days. There the
// offset stays until the year ends.
func offsetAt(zone *time.Location, at int64) (offset, until int64) {
	local := time.Unix(at, 0).In(zone)
	_, seconds := local.Zone()
	_, end := local.ZoneBounds()
	if end.IsZero() {
		return int64(seconds), never
	}
	if until = end.Unix(); until <= at {
		until = time.Date(local.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return int64(seconds), until
}
