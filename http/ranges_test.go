package httpapi_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

// A range anywhere in the years 1 to 9999 is answered, or refused, within the deadline (contract 4.21): those at
// which the tz data of Go's library give no end of an offset, those before and after what ClickHouse's times can
// hold, and a sample of all zones and years.
func TestRangesOfEveryYear(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, nil)
	key := s.reader()
	at := func(text string) time.Time {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return instant
	}
	var records olaptest.Records
	for i, created := range []string{"1900-01-01T00:00:00Z", "2040-12-30T22:59:59.999Z", "2040-12-30T23:00:00Z",
		"2040-12-31T22:59:59.999Z", "2040-12-31T23:00:00Z", "2261-12-31T23:59:59.999Z"} {
		records.Runs = append(
			records.Runs,
			olaptest.Run{Organization: "acme", ID: olaptest.ID(i), CreatedAt: at(created), AgentID: olaptest.ID(1),
				Kind: "agent", Status: "COMPLETED", UpdatedAt: at(created)},
		)
	}
	olaptest.Load(t, store.Conn(), records)

	type body struct {
		Range struct{ StartUtc, EndUtc time.Time }
		Rows  [][]any
	}
	query := func(start, end, zone string) answer {
		t.Helper()
		// Were it not answered, the test would hang: the client gives up long before.
		ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
		defer cancel()
		text := fmt.Sprintf(
			`{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"range":{"start":%q,"end":%q,"timezone":%q}}`,
			start, end, zone)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+queryPath, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+key)
		return s.send(request)
	}
	for _, c := range []struct{ start, end, zone, startUTC, endUTC, rows string }{
		{"2040-12-31", "2040-12-31", "Europe/Berlin", "2040-12-30T23:00:00Z", "2040-12-31T23:00:00Z", "[[2040-12-31 2]]"},
		{"2040-12-30", "2041-01-01", "Europe/Berlin", "2040-12-29T23:00:00Z", "2041-01-01T23:00:00Z",
			"[[2040-12-30 1] [2040-12-31 2] [2041-01-01 1]]"},
		{"0001-01-01", "0001-12-31", "Asia/Tokyo", "0000-12-31T14:41:01Z", "0001-12-31T14:41:01Z", "[]"},
		{"1899-06-01", "1900-01-01", "UTC", "1899-06-01T00:00:00Z", "1900-01-02T00:00:00Z", "[[1900-01-01 1]]"},
		{"2261-12-31", "2262-12-31", "Etc/GMT-14", "2261-12-30T10:00:00Z", "2262-12-31T10:00:00Z", "[[2262-01-01 1]]"},
		{"2299-12-31", "2300-01-01", "America/New_York", "2299-12-31T05:00:00Z", "2300-01-02T05:00:00Z", "[]"},
		{"9996-12-31", "9996-12-31", "Europe/Berlin", "9996-12-30T23:00:00Z", "9996-12-31T23:00:00Z", "[]"},
		{"9999-12-31", "9999-12-31", "Europe/Berlin", "9999-12-30T23:00:00Z", "9999-12-31T23:00:00Z", "[]"},
	} {
		a := query(c.start, c.end, c.zone)
		a.want(t, http.StatusOK, "", "")
		got := decode[body](t, a.body)
		if !got.Range.StartUtc.Equal(at(c.startUTC)) || !got.Range.EndUtc.Equal(at(c.endUTC)) ||
			fmt.Sprint(got.Rows) != c.rows {
			t.Errorf("%s to %s %s: %s", c.start, c.end, c.zone, a.body)
		}
	}
	// Its end is the first instant of the year 10000, which RFC 3339 cannot write.
	query("9999-12-31", "9999-12-31", "UTC").want(t, http.StatusBadRequest, "invalid_query", "range.end")
	query("9999-12-31", "9999-12-31", "America/New_York").want(t, http.StatusBadRequest, "invalid_query", "range.end")

	list, err := os.ReadFile("../olap/daterange/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	zones := strings.Split(strings.TrimSpace(string(list)), "\n")[1:]
	random := rand.New(rand.NewPCG(1, 9999))
	for range 300 {
		year, zone := 1+random.IntN(9998), zones[random.IntN(len(zones))]
		start := time.Date(year, 12, 31-random.IntN(2)*random.IntN(365), 0, 0, 0, 0, time.UTC)
		end := start.AddDate(0, 0, random.IntN(2)*random.IntN(366))
		if end.Year() > 9998 {
			end = start
		}
		a := query(start.Format(time.DateOnly), end.Format(time.DateOnly), zone)
		a.want(t, http.StatusOK, "", "")
		// No wall clock is further than 26 hours from another one.
		got := decode[body](t, a.body)
		if got.Range.StartUtc.Sub(start).Abs() > 26*time.Hour ||
			got.Range.EndUtc.Sub(end.AddDate(0, 0, 1)).Abs() > 26*time.Hour ||
			got.Range.EndUtc.Before(got.Range.StartUtc) {
			t.Errorf("%v to %v %s: %s", start, end, zone, a.body)
		}
	}
}
