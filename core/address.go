package ratetier

import "net/netip"

// DefaultIPv6Prefix is how many leading bits of an IPv6 address tell callers apart
// where nothing else is said: a single customer commands a whole /64.
const DefaultIPv6Prefix = 64

// AddressKey turns the address of a client into what [Unidentified] is to be given:
// the IP address, without port and zone, IPv4 also where it came mapped into IPv6, and
// of an IPv6 address only its prefix of that many bits, 1 to 128, or 0 for
// [DefaultIPv6Prefix]. Whatever is no IP address, as from a Unix socket, is "", the one
// bucket that all those callers share.
func AddressKey(address string, ipv6Prefix int) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		addrPort, err := netip.ParseAddrPort(address)
		if err != nil {
			return ""
		}
		addr = addrPort.Addr()
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	if ipv6Prefix == 0 {
		ipv6Prefix = DefaultIPv6Prefix
	}
	prefix, err := addr.Prefix(ipv6Prefix)
	if err != nil {
		return ""
	}
	return prefix.String()
}
