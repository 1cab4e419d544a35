package httplimit

import "net/netip"

// clientKey turns the address of a client into what its bucket is kept under: the
// IP address, without port and zone, IPv4 also where it came mapped into IPv6, and
// of an IPv6 address only its prefix. Whatever is no IP address, as from a Unix
// socket, is "", the one bucket that all those callers share.
func clientKey(address string, ipv6Prefix int) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		addrPort, err := netip.ParseAddrPort(address)
		if err != nil {
			return ""
		}
		addr = addrPort.Addr()
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		prefix, err := addr.Prefix(ipv6Prefix)
		if err != nil {
			return ""
		}
		return prefix.String()
	}
	return addr.String()
}
