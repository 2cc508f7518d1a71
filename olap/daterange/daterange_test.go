package daterange

import (
	"os"
	"strings"
	"testing"
	"time"
)

func utc(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// Contract 4.8, each expectation from the zone's published changes of the clock.
func TestInstants(t *testing.T) {
	for _, c := range []struct{ name, start, end, zone, startUTC, endUTC string }{
		{"UTC", "2026-01-01", "2026-01-31", "UTC", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"},
		{"one day of 23 hours", "2026-03-29", "2026-03-29", "Europe/Stockholm", "2026-03-28T23:00:00Z",
			"2026-03-29T22:00:00Z"},
		{"one day of 25 hours", "2026-10-25", "2026-10-25", "Europe/Stockholm", "2026-10-24T22:00:00Z",
			"2026-10-25T23:00:00Z"},
		{"quarter of an hour", "2026-06-01", "2026-06-01", "Asia/Kathmandu", "2026-05-31T18:15:00Z", "2026-06-01T18:15:00Z"},
		{"no midnight: the day begins at 01:00", "2022-09-11", "2022-09-11", "America/Santiago", "2022-09-11T04:00:00Z",
			"2022-09-12T03:00:00Z"},
		{"midnight twice: the first one counts", "2006-10-29", "2006-10-29", "America/St_Johns", "2006-10-29T02:30:00Z",
			"2006-10-30T03:30:00Z"},
		{"the day before, which comes back for an hour", "2006-10-28", "2006-10-28", "America/St_Johns",
			"2006-10-28T02:30:00Z", "2006-10-29T02:30:00Z"},
		{"skipped day: an empty range", "2011-12-30", "2011-12-30", "Pacific/Apia", "2011-12-30T10:00:00Z",
			"2011-12-30T10:00:00Z"},
		{"around a skipped day", "2011-12-29", "2011-12-31", "Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"fixed offset, POSIX sign", "2026-01-01", "2026-01-01", "Etc/GMT-14", "2025-12-31T10:00:00Z",
			"2026-01-01T10:00:00Z"},
		// The last day of a leap year after the table of the tz data: Berlin is an hour ahead, Sydney eleven, New York five
		// behind.
		{"31 December 2040", "2040-12-31", "2040-12-31", "Europe/Berlin", "2040-12-30T23:00:00Z", "2040-12-31T23:00:00Z"},
		{"31 December 2096, south", "2096-12-31", "2096-12-31", "Australia/Sydney", "2096-12-30T13:00:00Z",
			"2096-12-31T13:00:00Z"},
		{"31 December 9996", "9996-12-31", "9996-12-31", "America/New_York", "9996-12-31T05:00:00Z", "9997-01-01T05:00:00Z"},
		{"around a year's end", "2048-12-30", "2049-01-02", "Africa/Cairo", "2048-12-29T22:00:00Z", "2049-01-02T22:00:00Z"},
		{"local mean time, seconds cut off nothing", "0001-01-01", "0001-01-01", "America/New_York", "0001-01-01T04:56:02Z",
			"0001-01-02T04:56:02Z"},
		{"366 days", "2024-01-01", "2024-12-31", "UTC", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"366 days that are an hour longer", "2025-10-25", "2026-10-25", "Europe/Stockholm", "2025-10-24T22:00:00Z",
			"2026-10-25T23:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Parse(c.start, c.end, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			if !r.StartUTC.Equal(utc(c.startUTC)) || !r.EndUTC.Equal(utc(c.endUTC)) {
				t.Errorf("got [%v, %v), want [%s, %s)", r.StartUTC, r.EndUTC, c.startUTC, c.endUTC)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, start, end, zone string
		want                   *Error
	}{
		{"not a leap year", "2026-02-29", "2026-03-01", "UTC", ErrStart},
		{"form", "2026-1-01", "2026-03-01", "UTC", ErrStart},
		{"with a time", "2026-01-01T00:00:00Z", "2026-03-01", "UTC", ErrStart},
		{"white space", " 2026-01-01", "2026-03-01", "UTC", ErrStart},
		{"other digits", "２０２６-01-01", "2026-03-01", "UTC", ErrStart},
		{"empty", "2026-01-01", "", "UTC", ErrEnd},
		{"month 13", "2026-01-01", "2026-13-01", "UTC", ErrEnd},
		{"start after end", "2026-01-02", "2026-01-01", "UTC", ErrOrder},
		{"367 days", "2024-01-01", "2025-01-01", "UTC", ErrTooLarge},
		{"end beyond RFC 3339", "9999-12-31", "9999-12-31", "UTC", ErrEnd},
		{"start before RFC 3339", "0000-01-01", "0000-01-01", "Asia/Tokyo", ErrStart},
		// Contract 4.9: legacy aliases, other spellings, and names that only Go accepts.
		{"alias", "2026-01-01", "2026-01-01", "US/Eastern", ErrTimezone},
		{"alias of an old name", "2026-01-01", "2026-01-01", "Asia/Calcutta", ErrTimezone},
		{"Etc/UTC", "2026-01-01", "2026-01-01", "Etc/UTC", ErrTimezone},
		{"GMT", "2026-01-01", "2026-01-01", "GMT", ErrTimezone},
		{"Etc/GMT", "2026-01-01", "2026-01-01", "Etc/GMT", ErrTimezone},
		{"Etc/GMT+0", "2026-01-01", "2026-01-01", "Etc/GMT+0", ErrTimezone},
		{"Etc/GMT+13", "2026-01-01", "2026-01-01", "Etc/GMT+13", ErrTimezone},
		{"EST", "2026-01-01", "2026-01-01", "EST", ErrTimezone},
		{"Local", "2026-01-01", "2026-01-01", "Local", ErrTimezone},
		{"none", "2026-01-01", "2026-01-01", "", ErrTimezone},
		{"letter case", "2026-01-01", "2026-01-01", "europe/stockholm", ErrTimezone},
		{"offset", "2026-01-01", "2026-01-01", "+02:00", ErrTimezone},
		{"Factory", "2026-01-01", "2026-01-01", "Factory", ErrTimezone},
		{"a path", "2026-01-01", "2026-01-01", "../UTC", ErrTimezone},
		{"a path from the root", "2026-01-01", "2026-01-01", "/UTC", ErrTimezone},
		{"a path from here", "2026-01-01", "2026-01-01", "./UTC", ErrTimezone},
		{"a folder", "2026-01-01", "2026-01-01", "America", ErrTimezone},
		{"a folder's path", "2026-01-01", "2026-01-01", "America/", ErrTimezone},
		{"the folder of all", "2026-01-01", "2026-01-01", ".", ErrTimezone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Parse(c.start, c.end, c.zone); err != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// Europe/Stockholm is a link in tzdata and canonical all the same (contract 4.9).
func TestZonesAreThoseOfTheList(t *testing.T) {
	list, err := os.ReadFile("zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSpace(string(list)), "\n")[1:]
	if len(names) != len(Zones()) {
		t.Errorf("%d names in the list, %d in the archive", len(names), len(Zones()))
	}
	for _, name := range names {
		if _, ok := loadZone(name); !ok {
			t.Errorf("%s is listed but has no data", name)
		}
	}
	for _, name := range []string{"Europe/Stockholm", "UTC", "Etc/GMT+12", "Etc/GMT-14", "Asia/Kolkata",
		"America/Argentina/Buenos_Aires"} {
		if _, ok := loadZone(name); !ok {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestDate(t *testing.T) {
	for _, s := range []string{"0000-01-01", "1582-10-15", "1900-01-01", "1969-12-31", "1970-01-01", "2024-02-29",
		"9999-12-31"} {
		d, ok := ParseDate(s)
		if !ok || d.String() != s {
			t.Errorf("%s became %v, %v", s, d, ok)
		}
	}
	if d, _ := ParseDate("1969-12-31"); d != -1 {
		t.Errorf("the day before the first is %d, want -1", d)
	}
}
