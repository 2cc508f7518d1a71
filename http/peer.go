package httpapi

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// callerAddress is where a request comes from: the peer of the connection, or, if that is one of TrustedProxies, the
// right-most address of X-Forwarded-For that is none of them. Whatever is left of it the caller may have
// written. It is the zero address if it is unknown, as in a field that cannot be read.
func (s *Server) callerAddress(c *fiber.Ctx) netip.Addr {
	peer, err := netip.ParseAddrPort(c.Context().RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	address := peer.Addr().Unmap()
	if !s.isProxy(address) {
		return address
	}
	var hops []string
	for _, field := range c.Request().Header.PeekAll(fiber.HeaderXForwardedFor) {
		hops = append(hops, strings.Split(string(field), ",")...)
	}
	for _, hop := range slices.Backward(hops) {
		if address, err = netip.ParseAddr(strings.TrimSpace(hop)); err != nil {
			return netip.Addr{}
		}
		if address = address.Unmap(); !s.isProxy(address) {
			return address
		}
	}
	return address // all of them are proxies: the first one is the caller
}

func (s *Server) isProxy(address netip.Addr) bool {
	return slices.ContainsFunc(s.TrustedProxies, func(n netip.Prefix) bool { return n.Contains(address.WithZone("")) })
}
