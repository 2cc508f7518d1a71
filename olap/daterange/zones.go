package daterange

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io"
	"maps"
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

var zoneFiles = sync.OnceValue(func() map[string]*zip.File {
	archive, err := zip.NewReader(bytes.NewReader(zonesZip), int64(len(zonesZip)))
	if err != nil {
		panic("daterange: embedded zones: " + err.Error())
	}
	files := make(map[string]*zip.File, len(archive.File))
	for _, f := range archive.File {
		files[f.Name] = f
	}
	return files
})

// Zones are the canonical zones by name, sorted.
func Zones() []string { return slices.Sorted(maps.Keys(zoneFiles())) }

var loaded sync.Map // of name to *time.Location; bounded by the number of canonical zones

func loadZone(name string) (*time.Location, bool) {
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), true
	}
	file, ok := zoneFiles()[name]
	if !ok {
		return nil, false
	}
	zone, err := readZone(file)
	if err != nil {
		panic("daterange: embedded zone " + name + ": " + err.Error())
	}
	loaded.Store(name, zone)
	return zone, true
}

func readZone(file *zip.File) (*time.Location, error) {
	r, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(file.Name, data)
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
