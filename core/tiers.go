package ratetier

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ratetier/ratetier/core/gcra"
)

// Tiers is the table of plans: the quota of each, by name. A name is any
// non-empty string. It marshals to and from JSON, YAML and the like as a map of
// texts:
//
//	{"free": "10/min", "pro": "20/s burst 100 and 50000/day", "enterprise": "unlimited"}
type Tiers map[string]Quota

// tier is one validated entry of the table. It is immutable.
type tier struct {
	name   string
	quota  Quota
	limits []gcra.Limit
	burst  int64 // the smallest of its rates': no cost above it ever fits
}

// table is what a request is decided by. It is immutable, and swapped whole.
type table struct {
	tiers     map[string]*tier
	byDefault *tier // nil if there is none
}

// newTable validates tiers and reports everything that is wrong with them.
func newTable(tiers Tiers, defaultTier string) (*table, error) {
	t := &table{tiers: make(map[string]*tier, len(tiers))}
	var errs []error
	if len(tiers) == 0 {
		errs = append(errs, errors.New("no tiers: name at least one plan and its quota"))
	}
	for _, name := range slices.Sorted(maps.Keys(tiers)) {
		compiled, err := newTier(name, tiers[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("tier %q: %w", name, err))
			continue
		}
		t.tiers[name] = compiled
	}
	if defaultTier != "" {
		t.byDefault = t.tiers[defaultTier]
		if quota, ok := tiers[defaultTier]; !ok {
			errs = append(errs, fmt.Errorf("default tier %q is not among the tiers %q", defaultTier, slices.Sorted(maps.Keys(tiers))))
		} else if quota.IsUnlimited() {
			errs = append(errs, fmt.Errorf("default tier %q is unlimited, so whoever is unknown would be too: "+
				"name a limited tier, or say Allow() in OnMissing and OnUnknownTier", defaultTier))
		}
	}
	return t, errors.Join(errs...)
}

func newTier(name string, quota Quota) (*tier, error) {
	if name == "" {
		return nil, errors.New("a tier needs a name")
	}
	limits, err := quota.limits()
	if err != nil {
		return nil, err
	}
	t := &tier{name: name, quota: quota, limits: limits}
	for i, limit := range limits {
		if burst := limit.Burst(); i == 0 || burst < t.burst {
			t.burst = burst
		}
	}
	return t, nil
}
