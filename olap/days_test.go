package olap_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/olap/daterange"
	"github.com/runlens/runlens/olap/olaptest"
)

// Where ClickHouse's tz data are not those of this repository, until the end of that year: its copy is of another
// release, and has not the separate past of zones that have been alike since 1970.
var otherPast = map[string]int{
	"America/Kralendijk": 1965, "America/Lower_Princes": 1965, "America/Marigot": 1945, "America/Phoenix": 1944,
	"America/St_Barthelemy": 1945,
	"America/Toronto":       1919, "Arctic/Longyearbyen": 1949, "Asia/Tehran": 1978,
}

// ClickHouse's dates of time zones are defined from 1900 to 2299. In every canonical zone a day begins where its
// toDate32 says so: a second before it is an earlier date, and at its first instant it is that date. The days are
// those around every change of a clock and every year's end. Left out are days on which midnight exists twice: the
// first one counts here (contract 4.8), the second one there.
func TestDaysAreThoseOfClickHouse(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	list, err := os.ReadFile("daterange/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	if err := conn.QueryRow(context.Background(),
		"SELECT groupArray(time_zone) FROM system.time_zones").Scan(&known); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(2)
	compared, sample := 0, olaptest.NewSample(16)
	for _, zone := range strings.Split(strings.TrimSpace(string(list)), "\n")[1:] {
		if !slices.Contains(known, zone) {
			continue // younger than ClickHouse's copy
		}
		if compared++; !sample.Try() {
			continue
		}
		group.Go(func() error {
			days := map[daterange.Date]time.Time{} // and their first instants
			add := func(day daterange.Date) {
				for d := day - 1; d <= day+1; d++ {
					r, err := daterange.Parse(d.String(), d.String(), zone)
					if err != nil {
						t.Error(zone, d, err)
						return
					}
					if !midnightTwice(r) {
						days[d] = r.StartUTC
					}
				}
			}
			for year := max(1901, otherPast[zone]+1); year < 2299; year++ {
				r, err := daterange.Parse(fmt.Sprintf("%d-01-01", year), fmt.Sprintf("%d-12-31", year), zone)
				if err != nil {
					return err
				}
				add(r.End)
				for _, o := range r.Offsets[:len(r.Offsets)-1] {
					add(daterange.Date(o.UntilUTC.Unix() / (24 * 60 * 60)))
				}
			}
			var seconds, names []string
			for day, begins := range days {
				seconds, names = append(seconds, fmt.Sprint(begins.Unix())), append(names, fmt.Sprint(int64(day)))
			}
			rows, err := conn.Query(context.Background(),
				"SELECT day, begins, toInt32(toDate32(fromUnixTimestamp64Milli((begins - 1) * 1000, '"+zone+"'))), "+
					"toInt32(toDate32(fromUnixTimestamp64Milli(begins * 1000, '"+zone+"'))) FROM (SELECT arrayJoin(arrayZip("+
					"["+strings.Join(names, ",")+"]::Array(Int32), ["+strings.Join(seconds, ",")+
					"]::Array(Int64))) AS pair, pair.1 AS day, pair.2 AS begins)")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var day, before, from int32
				var begins int64
				if err := rows.Scan(&day, &begins, &before, &from); err != nil {
					return err
				}
				if before >= day || from < day {
					t.Errorf("%s: %v begins at %v, but ClickHouse has %v a second before and then %v", zone, daterange.Date(day),
						time.Unix(begins, 0).UTC(), daterange.Date(before), daterange.Date(from))
				}
			}
			return rows.Err()
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if compared < 440 {
		t.Errorf("only %d zones can be compared", compared)
	}
}

// midnightTwice reports whether the clock goes back into the day before on a range of one day.
func midnightTwice(r daterange.Range) bool {
	for i, o := range r.Offsets[1:] {
		if r.Offsets[i].UntilUTC.UnixMilli()+o.Millis < int64(r.Start)*24*60*60*1000 {
			return true
		}
	}
	return false
}
