package ratetier_test

import (
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
)

func TestTheTighterDecisionHasLessLeft(t *testing.T) {
	left := func(remaining int64) ratetier.Decision {
		return ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Remaining: remaining}
	}
	limited, unlimited := ratetier.Decision{Outcome: ratetier.OutcomeLimited}, ratetier.Decision{Outcome: ratetier.OutcomeUnlimited}
	for _, step := range []struct {
		name        string
		one, other  ratetier.Decision
		wantTighter bool
	}{
		{"less", left(2), left(3), true},
		{"as much", left(2), left(2), false},
		{"more", left(3), left(2), false},
		{"nothing, refused", limited, left(1), true},
		{"figures, against none", left(3), unlimited, true},
		{"no figures, against some", unlimited, left(3), false},
		{"no figures, against none", unlimited, unlimited, false},
	} {
		if got := step.one.Tighter(&step.other); got != step.wantTighter {
			t.Errorf("%s: tighter is %t", step.name, got)
		}
	}
}
