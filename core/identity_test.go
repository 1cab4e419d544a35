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
		{"no user", ratetier.Identity{Tier: "free"}, nil, ratetier.Unidentified("192.0.2.1", ratetier.ErrNoIdentity)},
		{"no identity", ratetier.Identity{}, ratetier.ErrNoIdentity, ratetier.Unidentified("192.0.2.1", ratetier.ErrNoIdentity)},
		{"no answer", ratetier.Identity{}, errDatabase, ratetier.Unidentified("192.0.2.1", errDatabase)},
		{"a user, and an error", ana, errDatabase, ratetier.Unidentified("192.0.2.1", errDatabase)},
	} {
		asked := false
		got := ratetier.Identified(step.identity, step.err, func() string {
			asked = true
			return "192.0.2.1"
		})
		if got != step.want || asked != (got != ana) {
			t.Errorf("%s: %q of tier %q, address asked for: %t", step.name, got.User, got.Tier, asked)
		}
	}
}
