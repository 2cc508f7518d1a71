package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/schema"
)

// parseScopes reads a comma-separated list of the scopes that exist.
func parseScopes(text string) ([]string, error) {
	scopes := []string{}
	for scope := range strings.SplitSeq(text, ",") {
		scope = strings.TrimSpace(scope)
		switch {
		case scope == "" || slices.Contains(scopes, scope):
		case slices.Contains(auth.Scopes, scope):
			scopes = append(scopes, scope)
		default:
			return nil, fmt.Errorf("--scopes: there is no scope %q; there are %s", scope, strings.Join(auth.Scopes, ", "))
		}
	}
	return scopes, nil
}

// parseSpan reads a duration: whole days, such as 90d, or what Go writes, such as 36h.
func parseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return 0, fmt.Errorf("%q is no duration such as 90d or 36h", text)
	}
	return span, nil
}

// lastExpiry is after every instant that the store can keep.
var lastExpiry = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)

// parseExpiry reads when a key expires: a duration from now, a day, which means its first instant in UTC, or
// an RFC 3339 instant. The empty text is nil, never. An instant that has passed is an error.
func parseExpiry(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	var at time.Time
	if span, err := parseSpan(text); err == nil {
		at = now.Add(span)
	} else if at, err = time.Parse(time.DateOnly, text); err != nil {
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, fmt.Errorf("%q must be a duration such as 90d, a day such as 2027-01-31, or an RFC 3339 instant", text)
		}
	}
	at = at.UTC().Truncate(time.Millisecond)
	if !at.After(now) || !at.Before(lastExpiry) {
		return nil, fmt.Errorf("%s is not in the future, or after 2261", instant(at))
	}
	return &at, nil
}

// parseOverlap reads how long a key goes on and returns its end, which may be now.
func parseOverlap(text string, now time.Time) (time.Time, error) {
	overlap, err := parseSpan(text)
	if err != nil {
		return time.Time{}, err
	}
	end := now.Add(overlap)
	if !end.Before(lastExpiry) {
		return end, fmt.Errorf("%s is after 2261", instant(end))
	}
	return end, nil
}

// parseNetworks reads networks in CIDR notation; a bare address is a network of its own.
func parseNetworks(texts []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil || address.Zone() != "" {
				return nil, fmt.Errorf("%q is no network such as 10.0.0.0/8 or 2001:db8::/32", text)
			}
			address = address.Unmap()
			network = netip.PrefixFrom(address, address.BitLen())
		}
		if network.Addr().Is4In6() {
			return nil, errors.New("write IPv4 networks as such, not as " + text)
		}
		if network = network.Masked(); !slices.Contains(networks, network) {
			networks = append(networks, network)
		}
	}
	return networks, nil
}

func parseKeyNetworks(texts []string) ([]netip.Prefix, error) {
	networks, err := parseNetworks(texts)
	if err == nil && len(networks) > schema.MaxKeyNetworks {
		err = fmt.Errorf("a key has at most %d networks", schema.MaxKeyNetworks)
	}
	return networks, err
}

// shownNetworks are networks as text; nil for none.
func shownNetworks(networks []netip.Prefix) []string {
	var texts []string
	for _, network := range networks {
		texts = append(texts, network.String())
	}
	return texts
}

// instant is RFC 3339 in UTC with milliseconds.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func optionalInstant(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := instant(*t)
	return &text
}

func shownScopes(scopes []string) string {
	if len(scopes) == 0 {
		return "none"
	}
	return strings.Join(scopes, ", ")
}
