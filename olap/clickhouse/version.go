package clickhouse

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// layoutNumber counts the ways runlens has arranged the files of an engine's folder.
const layoutNumber = 1

// A versionRecord is the content of <data>/engine/VERSION: what wrote the data directory last, and which library file
// that was, so that only a changed library is probed for its version again.
type versionRecord struct {
	Layout          int       `json:"layout"`
	Engine          string    `json:"engine"`
	Library         string    `json:"library"`
	LibraryModified time.Time `json:"library_modified"`
}

// ErrOtherVersion is returned for a data directory that a newer engine or a newer runlens wrote.
var ErrOtherVersion = errors.New("the data directory was written by a newer version")

// adoptVersion checks that the library may open the data directory and records that it does. It
// returns the library's version. ClickHouse reads what an older ClickHouse wrote, never the reverse.
// The caller holds the engine lock.
func (l layout) adoptVersion(library string) (string, error) {
	info, err := os.Stat(library)
	if err != nil {
		return "", err
	}
	var before versionRecord
	content, err := os.ReadFile(l.version())
	switch {
	case errors.Is(err, fs.ErrNotExist): // a new data directory
	case err != nil:
		return "", err
	default:
		if err := json.Unmarshal(content, &before); err != nil {
			return "", fmt.Errorf("%s is not a version file of runlens (%w); use another data directory (RUNLENS_DATA_DIR)",
				l.version(), err)
		}
	}
	now := versionRecord{Layout: layoutNumber, Engine: before.Engine, Library: library,
		LibraryModified: info.ModTime().UTC()}
	if before.Library != now.Library || !before.LibraryModified.Equal(now.LibraryModified) {
		if now.Engine, err = probeVersion(library, l.dir); err != nil {
			return "", err
		}
	}
	if before.Layout > now.Layout || newer(before.Engine, now.Engine) {
		return "", fmt.Errorf("%w: %s holds data of engine %s (layout %d), this is engine %s (layout %d); install the "+
			"newer runlens and run `runlens engine fetch`, or use another data directory (RUNLENS_DATA_DIR)",
			ErrOtherVersion, l.dir, before.Engine, before.Layout, now.Engine, now.Layout)
	}
	if now == before {
		return now.Engine, nil
	}
	content, err = json.Marshal(now)
	if err != nil {
		return "", err
	}
	return now.Engine, writeFileAtomic(l.version(), content)
}

// errNoVersion is returned for a library that does not say its version.
var errNoVersion = errors.New("the engine library does not say its version")

// probeVersion reads the version of the library, in a process of its own: a library can be entered only once in the
// life of a process. The library makes files in a directory meanwhile.
func probeVersion(library, dir string) (string, error) {
	cmd, err := childTask{Library: library}.command()
	if err != nil {
		return "", err
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+dir) // instead of what it is elsewhere
	var failure strings.Builder
	cmd.Stderr = &failure
	output, err := cmd.Output()
	version := string(output)
	if year, _ := release(version); err != nil || year == 0 {
		return "", fmt.Errorf("%w: %s: %s", errNoVersion, library, lastLines(failure.String(), 3))
	}
	return version, nil
}

// newer reports whether version a, such as "26.7.2.1", has a greater year or month than b. Versions of one month share
// their formats.
func newer(a, b string) bool {
	aYear, aMonth := release(a)
	bYear, bMonth := release(b)
	return aYear > bYear || aYear == bYear && aMonth > bMonth
}

// release returns the first two numbers of a version, 0 for what is no number.
func release(version string) (year, month int) {
	parts := strings.SplitN(version, ".", 3)
	year, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		month, _ = strconv.Atoi(parts[1])
	}
	return year, month
}

// LibraryVersion returns the version of the embedded engine's library without starting an engine;
// named is Config.EngineLib.
func LibraryVersion(named string) (string, error) {
	library, err := findLibrary(named)
	if err != nil {
		return "", err
	}
	version, err := probeVersion(library, os.TempDir())
	if err != nil {
		return "", explain(err, "")
	}
	return version, nil
}
