package daterange

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io"
	"maps"
	"slices"
	"sync"
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

var loaded sync.Map // of name to *wallClock; bounded by the number of canonical zones

func loadZone(name string) (*wallClock, bool) {
	if zone, ok := loaded.Load(name); ok {
		return zone.(*wallClock), true
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

func readZone(file *zip.File) (*wallClock, error) {
	r, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return readTZif(data)
}
