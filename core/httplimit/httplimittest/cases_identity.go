package httplimittest

import (
	"fmt"
	"net/http"

	ratetier "github.com/ratetier/ratetier/core"
)

// identities are the promises about who shares a bucket.
var identities = []promise{
	{"each user has a bucket of its own in each tier, which no other name can reach", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{
			Tiers:       ratetier.Tiers{"a": ratetier.PerMinute(10), "a:b": ratetier.PerMinute(10)},
			DefaultTier: "a",
		}), config{})})
		for _, caller := range [][]string{
			{"X-User: c", "X-Tier: a"},
			{"X-User: c", "X-Tier: a:b"},
			{"X-User: b:c", "X-Tier: a"},
			{"X-User: 10.0.0.1", "X-Tier: a"},
			{peerHeader + ": 10.0.0.1:80"},
		} {
			s.get("/", caller...).left(9)
		}
	}},

	{"callers without an identity are told apart by address, and not by port", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free"}), config{})})
		for i := range 10 {
			s.get("/", fmt.Sprintf("%s: 192.0.2.1:%d", peerHeader, 1024+i)).left(9 - i)
		}
		s.get("/", peerHeader+": 192.0.2.1:9").is(http.StatusTooManyRequests)
		s.get("/", peerHeader+": [::ffff:192.0.2.1]:9").is(http.StatusTooManyRequests)
		s.get("/", peerHeader+": 192.0.2.2:1024").left(9)
	}},

	{"headers of proxies change nothing unless ClientAddr says so", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free"}), config{})})
		for i := range 10 {
			ip := fmt.Sprintf("203.0.113.%d", i)
			s.get("/", "X-Forwarded-For: "+ip, "X-Real-IP: "+ip, "Forwarded: for="+ip, "True-Client-IP: "+ip,
				"CF-Connecting-IP: "+ip, "X-Client-IP: "+ip).left(9 - i)
		}
	}},

	{"ClientAddr replaces the address of the peer", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free"}), config{
			ClientAddr: func(r *http.Request) string { return r.Header.Get("X-Real-IP") },
		})})
		s.get("/", "X-Real-IP: 203.0.113.1").left(9)
		s.get("/", "X-Real-IP: 203.0.113.1:443").left(8)
		s.get("/", "X-Real-IP: 203.0.113.2").left(9)
	}},

	{"an IPv6 caller is its /64, or as many bits as IPv6Prefix says", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free"}), config{})})
		for i := range 10 {
			s.get("/", fmt.Sprintf("%s: [2001:db8:0:7:%x::1]:80", peerHeader, i)).left(9 - i)
		}
		s.get("/", peerHeader+": [2001:db8:0:8::1]:80").left(9)
		s.get("/", peerHeader+": [fe80::1%eth0]:80").left(9)
		s.get("/", peerHeader+": [fe80::1%eth1]:80").left(8)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free"}), config{IPv6Prefix: 56})})
		s.get("/", peerHeader+": [2001:db8:0:7::1]:80").left(9)
		s.get("/", peerHeader+": [2001:db8:0:8::1]:80").left(8)
		s.get("/", peerHeader+": [2001:db8:0:107::1]:80").left(9)
	}},

	{"callers without an IP address share one bucket", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free"}), config{})})
		for i, peer := range []string{"@", "", "unix", "<nil>", "300.0.0.1:80"} {
			s.get("/", peerHeader+": "+peer).left(9 - i)
		}
	}},

	{"an empty user is no identity", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{OnMissing: ratetier.Deny(http.StatusUnauthorized)}), config{
			Identify: func(r *http.Request) (ratetier.Identity, error) {
				return ratetier.Identity{User: r.Header.Get("X-User"), Tier: "free"}, nil
			},
		})})
		s.get("/").is(http.StatusUnauthorized, unmeasured...)
		s.get("/", ana).left(9)
	}},
}
