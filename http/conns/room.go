package conns

import (
	"net"
	"net/netip"
	"slices"
	"time"
)

// When places run out, the connection that makes room is one of the address that holds most of them, and of those the
// first that there is of:
//
//  1. one that is idle, for the longest time;
//  2. one whose request is arriving, for the longest time;
//  3. one whose request is being answered, for the longest time, if the new connection has another address;
//  4. one that is idle and had a valid key on its last request, if the new connection has the same address.
//
// The first three had no valid key on their last request. An address that holds no more places than the one that needs
// one loses none. Where it is the cap of one address that is reached, the address makes room for itself. So a flood,
// from however many addresses, displaces itself first, and a stranger never costs a client with a key its connection.

// An origin is whose places are counted together: those of an address, or those of one connection of a proxy.
type origin struct {
	address netip.Addr
	holds   int
}

// admit accepts a connection, in place of another one if it must. Where nobody's place can be taken it closes the new
// one and returns the cap that was reached.
func (l *Listener) admit(inner net.Conn) (accepted net.Conn, full string) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &conn{Conn: inner, listener: l, origin: l.originOf(inner), reading: true, began: now, since: now}
	inAddress := func(other *conn, does activity) int {
		if other.origin != c.origin {
			return 0
		}
		return does.classFor(true)
	}
	inAll := func(other *conn, does activity) int {
		if same := other.origin == c.origin; same || other.origin.holds > c.origin.holds {
			return does.classFor(same)
		}
		return 0
	}
	perAddress := l.caps.PerAddress
	if l.caps.Crowded > 0 && len(l.open) >= l.caps.All/2 {
		perAddress = l.caps.Crowded
	}
	switch {
	case c.origin.holds >= perAddress && !l.makeRoom(inAddress):
		full = CapPerAddress
	case len(l.open) >= l.caps.All && !l.makeRoom(inAll):
		full = CapAll
	default:
		l.remember(c)
		return c, ""
	}
	l.refused[full]++
	inner.Close()
	return nil, full
}

// originOf finds the origin of a connection. The caller holds l.mu.
func (l *Listener) originOf(c net.Conn) *origin {
	peer, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return &origin{}
	}
	address := peer.Addr().Unmap().WithZone("")
	if slices.ContainsFunc(l.caps.Exempt, func(n netip.Prefix) bool { return n.Contains(address) }) {
		return &origin{}
	}
	if network, err := address.Prefix(64); err == nil && address.Is6() {
		address = network.Addr()
	}
	if known := l.origins[address]; known != nil {
		return known
	}
	return &origin{address: address}
}

// makeRoom closes the connection that is the first one to make room for those that class has a number of the list above
// for, 0 for one that stays; it reports whether there was one. The caller holds l.mu.
func (l *Listener) makeRoom(class func(*conn, activity) int) bool {
	var first *conn
	var firstClass int
	var firstSince time.Time
	for _, c := range l.open {
		if first != nil && c.origin.holds < first.origin.holds {
			continue
		}
		does := c.does()
		n := class(c, does)
		if n == 0 {
			continue
		}
		if first == nil || c.origin.holds > first.origin.holds || n < firstClass ||
			n == firstClass && does.since.Before(firstSince) {
			first, firstClass, firstSince = c, n, does.since
		}
	}
	if first == nil {
		return false
	}
	l.forget(first)
	l.displaced++
	first.Conn.Close()
	return true
}

// classFor is the number in the list above of a connection that does this, 0 for one that stays. same says that the new
// connection has the same origin.
func (a activity) classFor(same bool) int {
	switch {
	case a.authenticated && a.state == idle && same:
		return 4
	case a.authenticated, a.state == working && same:
		return 0
	}
	return int(a.state) + 1
}

// remember counts a connection. The caller holds l.mu.
func (l *Listener) remember(c *conn) {
	c.place = len(l.open)
	l.open = append(l.open, c)
	if c.origin.holds++; c.origin.address.IsValid() {
		l.origins[c.origin.address] = c.origin
	}
}

// forget counts a connection no longer. The caller holds l.mu.
func (l *Listener) forget(c *conn) {
	if c.place < 0 {
		return
	}
	last := len(l.open) - 1
	l.open[c.place] = l.open[last]
	l.open[c.place].place = c.place
	l.open[last] = nil
	l.open, c.place = l.open[:last], -1
	if c.origin.holds--; c.origin.holds == 0 {
		delete(l.origins, c.origin.address)
	}
}
