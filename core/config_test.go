package ratetier_test

import (
	"strings"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
)

// Everything that is wrong with a config is told at once, with the value and the fix.
func TestNewNamesWhatIsWrong(t *testing.T) {
	good := ratetier.Config{Store: newStore(), Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10), "max": ratetier.Unlimited()}}
	with := func(change func(*ratetier.Config)) ratetier.Config {
		config := good
		change(&config)
		return config
	}
	for _, test := range []struct {
		config ratetier.Config
		want   []string
	}{
		{ratetier.Config{}, []string{"no Store: use for example memorystore.New()", "no tiers: name at least one plan and its quota"}},
		{with(func(c *ratetier.Config) { c.Tiers = ratetier.Tiers{"": ratetier.PerMinute(1)} }), []string{`tier "": a tier needs a name`}},
		{with(func(c *ratetier.Config) {
			c.Tiers = ratetier.Tiers{"a": ratetier.PerMinute(0), "b": {}, "ok": ratetier.PerDay(1)}
		}), []string{`tier "a": count 0: must be at least 1`, `tier "b": no quota: write for example "10/min"`}},
		{with(func(c *ratetier.Config) { c.DefaultTier = "fre" }), []string{`default tier "fre" is not among the tiers ["free" "max"]`}},
		{with(func(c *ratetier.Config) { c.DefaultTier = "max" }), []string{`default tier "max" is unlimited, so whoever is unknown would be too: name a limited tier, or say Allow()`}},
		{with(func(c *ratetier.Config) { c.OnMissing = ratetier.Deny(200) }), []string{"OnMissing: Deny(200): the status must be an error, 400 to 599"}},
		{with(func(c *ratetier.Config) { c.OnUnknownTier = ratetier.Deny(399) }), []string{"OnUnknownTier: Deny(399)"}},
		{with(func(c *ratetier.Config) { c.OnIdentifyFailed = ratetier.Deny(600) }), []string{"OnIdentifyFailed: Deny(600)"}},
		{with(func(c *ratetier.Config) { c.OnStoreFailed = ratetier.Deny(0) }), []string{"OnStoreFailed: Deny(0)"}},
		{with(func(c *ratetier.Config) { c.OnMissing = ratetier.UseDefaultTier() }), []string{"OnMissing: UseDefaultTier() needs a DefaultTier"}},
		{with(func(c *ratetier.Config) { c.OnUnknownTier = ratetier.UseDefaultTier() }), []string{"OnUnknownTier: UseDefaultTier() needs a DefaultTier"}},
		{with(func(c *ratetier.Config) { c.OnIdentifyFailed = ratetier.UseDefaultTier() }), []string{"OnIdentifyFailed: UseDefaultTier() needs a DefaultTier"}},
		{with(func(c *ratetier.Config) { c.DefaultTier, c.OnStoreFailed = "free", ratetier.UseDefaultTier() }), []string{"OnStoreFailed: UseDefaultTier() needs the store that failed; use Allow() or Deny(503)"}},
		{with(func(c *ratetier.Config) {
			c.Store, c.DefaultTier, c.OnMissing = nil, "gold", ratetier.Deny(1)
		}), []string{"no Store", `default tier "gold"`, "OnMissing: Deny(1)"}},
	} {
		limiter, err := ratetier.New(test.config)
		if err == nil || limiter != nil || !strings.HasPrefix(err.Error(), "ratetier: ") {
			t.Errorf("New returned %v, %v, want an error with %q", limiter, err, test.want)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error %q lacks %q", err, want)
			}
		}
	}
	if _, err := ratetier.New(good); err != nil {
		t.Errorf("a good config: %v", err)
	}
}

func TestMustPanicsWithTheError(t *testing.T) {
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "no Store") {
			t.Errorf("panicked with %v", err)
		}
	}()
	ratetier.Must(ratetier.New(ratetier.Config{}))
}
