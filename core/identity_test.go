package ratetier_test

import (
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
)

func TestWhoeverIsNotIdentifiedIsAnAddress(t *testing.T) {
	for _, step := range []struct {
		name     string
		identity ratetier.Identity
		err      error
		want     ratetier.Identity
	}{
		{"identified", ana, nil, ana},
		{"no user", ratetier.Identity{Tier: "free"}, nil, ratetier.Unidentified("2001:db8::/56", ratetier.ErrNoIdentity)},
		{"no identity", ratetier.Identity{}, ratetier.ErrNoIdentity, ratetier.Unidentified("2001:db8::/56", ratetier.ErrNoIdentity)},
		{"no answer", ratetier.Identity{}, errDatabase, ratetier.Unidentified("2001:db8::/56", errDatabase)},
		{"a user, and an error", ana, errDatabase, ratetier.Unidentified("2001:db8::/56", errDatabase)},
	} {
		asked := false
		got := ratetier.Identified(step.identity, step.err, 56, func() string {
			asked = true
			return "[2001:db8::7]:443"
		})
		if got != step.want || asked != (got != ana) {
			t.Errorf("%s: %q of tier %q, address asked for: %t", step.name, got.User, got.Tier, asked)
		}
	}
}
