// Package explain says what is wrong with a refused query and what to do about it. The API names a code and a place
// only; the rest is worked out here from the query, the catalog and the rules of the API.
package explain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/runlens/runlens/http/client"
)

// A Catalog reads the catalog; it is asked only where a refusal is about members.
type Catalog func(context.Context) (*client.Catalog, error)

// catalogWithin bounds the request for the catalog: an explanation is not worth a long wait.
const catalogWithin = 5 * time.Second

// Refusal is one line about an error of the client: what is wrong, and what to do. A usage error is one that the
// same question meets every time.
func Refusal(ctx context.Context, err error, q client.Query, catalog Catalog) (line string, usage bool) {
	var refused *client.Error
	var lost *client.ConnectionError
	switch {
	case errors.As(err, &lost):
		return connection(lost), false
	case errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &refused):
		return err.Error(), false
	case refused.Status == 401:
		return refused.Error() + "; the key is unknown or revoked, has expired, or is used from outside its networks: " +
			"'runlens keys create --org ORG' makes one, 'runlens login' keeps it", false
	case refused.Code == client.CodeRestrictedKey:
		return restricted(refused), true
	case refused.Status == 403:
		return refused.Error() + "; make one with the scope: " +
			"runlens keys create --org ORG --scopes analytics:read", false
	case refused.Reason == client.ReasonTooExpensive:
		return refused.Error(), false
	case refused.Status == 429:
		when := "later"
		if wait := refused.RetryAfter; wait > 0 {
			when = fmt.Sprintf("in %.0f s", math.Ceil(wait.Seconds()))
		}
		return refused.Error() + "; try again " + when, false
	case refused.Code == "":
		return refused.Error() + ", which is no answer of the API; is the address right?", false
	case refused.Status != 400:
		return refused.Error() + "; the server's log has the cause under this request", false
	}
	ctx, cancel := context.WithTimeout(ctx, catalogWithin)
	defer cancel()
	reason := ""
	switch refused.Code {
	case client.CodeUnknownMember:
		if c, err := catalog(ctx); err == nil {
			reason = unknownMember(c, q, refused.Param)
		}
	case client.CodeRangeTooLarge:
		reason = fmt.Sprintf("the range covers %d days, at most %d; --grain week or month asks for each part by itself",
			days(q.Range), client.MaxRangeDays)
	case client.CodeInvalidCursor:
		reason = "the cursor belongs to another query, key or server; ask without it"
	default:
		reason = place(ctx, q, refused.Param, catalog)
	}
	if reason == "" {
		return refused.Error(), true
	}
	return fmt.Sprintf("%s (%s at %s, request %s)", reason, refused.Code, refused.Param, refused.RequestID), true
}

func connection(lost *client.ConnectionError) string {
	if lost.NotConnected() {
		remedy := "is the address right, and the network there? --url or 'runlens login' names another"
		if to, err := url.Parse(lost.URL); err == nil && local(to.Hostname()) {
			remedy = "start it with 'runlens serve', or name another with --url"
		}
		return fmt.Sprintf("no server answers at %s: %s (%v)", lost.URL, remedy, lost.Err)
	}
	return lost.Error()
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// days is how many the range covers, both ends inclusive.
func days(r client.Range) int {
	start, err := time.Parse(time.DateOnly, r.Start)
	end, err2 := time.Parse(time.DateOnly, r.End)
	if err != nil || err2 != nil {
		return 0
	}
	return int(end.Sub(start)/(24*time.Hour)) + 1
}

var element = regexp.MustCompile(`^([a-z]+)(?:\[([0-9]+)\])?(?:\.([a-z]+))?(?:\[([0-9]+)\])?$`)

// place explains invalid_query at a place of the request. It is empty where nothing can be added.
func place(ctx context.Context, q client.Query, param string, catalog Catalog) string {
	parts := element.FindStringSubmatch(param)
	if parts == nil {
		return ""
	}
	n := -1
	if parts[2] != "" {
		n, _ = strconv.Atoi(parts[2])
	}
	switch field := parts[1]; {
	case param == "range.timezone":
		return zone(q.Range.Timezone)
	case param == "range.end" && days(q.Range) > 0:
		return fmt.Sprintf("the range ends on %s, and must end before the year 10000 begins in UTC", q.Range.End)
	case param == "range.start" || param == "range.end" || param == "range":
		return fmt.Sprintf("the range %s to %s must be two days of the form 2026-01-31, the first not after the last",
			q.Range.Start, q.Range.End)
	case field == "limit":
		return fmt.Sprintf("the limit is %d, and must be 1 to %d", q.Limit, client.MaxLimit)
	case field == "filters" && n >= 0 && n < len(q.Filters) && parts[3] != "member":
		return filter(q.Filters[n], parts[4])
	case field == "filters" && n < 0:
		return fmt.Sprintf("there are %d filters, at most %d", len(q.Filters), client.MaxFilters)
	case field == "cursor":
		return "a totals query and one in the order of a metric have one page and take no cursor"
	}
	c, err := catalog(ctx)
	if err != nil {
		return ""
	}
	return misplaced(c, q, parts[1], n)
}

func filter(f client.Filter, value string) string {
	if len(f.Values) > client.MaxFilterValues {
		return fmt.Sprintf("the filter on %s has %d values, at most %d", f.Member, len(f.Values), client.MaxFilterValues)
	}
	text := f.Value
	if n, err := strconv.Atoi(value); err == nil && n < len(f.Values) {
		text = f.Values[n]
	}
	if length := len([]rune(text)); length == 0 || length > client.MaxFilterLength {
		return fmt.Sprintf("a value of the filter on %s has %d characters, and must have 1 to %d",
			f.Member, length, client.MaxFilterLength)
	}
	return fmt.Sprintf("%s cannot filter by %q: a day is written 2026-01-31", f.Member, text)
}

// restricted says what a key that sees less than its organization does not permit.
func restricted(refused *client.Error) string {
	if refused.Reason == "range.start" {
		return refused.Error() + "; the key sees only the last days, and the range begins before: 'runlens keys list' says " +
			"how many"
	}
	return refused.Error() + "; the key shows groups of people and no person: ask without " + refused.Reason
}
