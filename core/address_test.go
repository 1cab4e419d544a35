package ratetier_test

import (
	"net/netip"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
)

func TestAddressKey(t *testing.T) {
	for _, step := range []struct {
		address string
		prefix  int
		key     string
	}{
		{"192.0.2.1:1024", 64, "192.0.2.1"},
		{"192.0.2.1:9", 64, "192.0.2.1"},
		{"192.0.2.1", 64, "192.0.2.1"},
		{"[::ffff:192.0.2.1]:80", 64, "192.0.2.1"},
		{"::ffff:192.0.2.1", 64, "192.0.2.1"},
		{"[::ffff:192.0.2.1%eth0]:80", 64, "192.0.2.1"},

		{"[::1]:80", 64, "::/64"},
		{"::1", 64, "::/64"},
		{"[2001:db8:1:2:3:4:5:6]:80", 64, "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::]:443", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2:ffff::1", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2ff::1", 56, "2001:db8:1:200::/56"},
		{"2001:db8::1", 128, "2001:db8::1/128"},
		{"2001:db8::1", 1, "::/1"},
		{"2001:db8::1", 0, "2001:db8::/64"},
		{"2001:db8::1", 129, ""},
		{"2001:db8::1", -1, ""},
		{"[fe80::1%eth0]:80", 64, "fe80::/64"},
		{"fe80::1%eth1", 128, "fe80::1/128"},

		{"", 64, ""},
		{"@", 64, ""},
		{"/run/app.sock", 64, ""},
		{"<nil>", 64, ""},
		{"localhost:80", 64, ""},
		{"300.0.0.1:80", 64, ""},
		{"192.0.2.1:", 64, ""},
		{"192.0.2.1:99999", 64, ""},
		{"192.0.2.1, 10.0.0.1", 64, ""},
		{"192.000.002.001", 64, ""},
		{"[::1]", 64, ""},
		{"::1]:80", 64, ""},
	} {
		if key := ratetier.AddressKey(step.address, step.prefix); key != step.key {
			t.Errorf("AddressKey(%q, %d) = %q, want %q", step.address, step.prefix, key, step.key)
		}
	}
}

func FuzzAddressKey(f *testing.F) {
	for _, address := range []string{"192.0.2.1:80", "[2001:db8::1%eth0]:80", "::ffff:192.0.2.1", "@", "", "[::1]", ":80", "%"} {
		f.Add(address, 64)
	}
	f.Fuzz(func(t *testing.T, address string, prefix int) {
		key := ratetier.AddressKey(address, 1+int(uint(prefix)%128))
		if key == "" {
			return
		}
		addr, err := netip.ParseAddr(key)
		if err != nil {
			masked, err := netip.ParsePrefix(key)
			if err != nil || masked.Masked() != masked {
				t.Fatalf("AddressKey(%q) = %q, which is neither an address nor a prefix", address, key)
			}
			return
		}
		if !addr.Is4() {
			t.Fatalf("AddressKey(%q) = %q, an IPv6 address without a prefix", address, key)
		}
	})
}
