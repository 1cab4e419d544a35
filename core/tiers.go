package ratetier

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/ratetier/ratetier/core/gcra"
)

// Tiers is the table of plans: the quota of each, by name. A name is any
// non-empty string. It marshals to and from JSON, YAML and the like as a map of
// texts:
//
//	{"free": "10/min", "pro": "20/s burst 100 and 50000/day", "enterprise": "unlimited"}
type Tiers map[string]Quota

// tier is one validated entry of the table. It is immutable but for next.
type tier struct {
	name   string
	quota  Quota
	limits []gcra.Limit
	burst  int64    // the smallest of its rates': no cost above it ever fits
	bursts []string // of each rate, in decimal, as headers have them
	hash   Hash     // what a quick store calls it

	// next is what took its place when the tiers were replaced, the zero tier if
	// nothing did. It is nil while the tier is in use.
	next atomic.Pointer[tier]
}

// since returns what the tier has become, and for each of its limits the smallest offset
// on the way, which is all that a bucket can still lack of what it lacked before. It
// returns nil if the tier was gone for a while, or had another number of rates.
func (t *tier) since() (now *tier, smallest [MaxRates]int64) {
	for now = t; ; now = now.next.Load() {
		if len(now.limits) != len(t.limits) {
			return nil, smallest
		}
		for i, limit := range now.limits {
			if now == t || limit.Offset < smallest[i] {
				smallest[i] = limit.Offset
			}
		}
		if now.next.Load() == nil {
			return now, smallest
		}
	}
}

// table is what a request is decided by. It is immutable, and swapped whole.
type table struct {
	tiers     map[string]*tier
	few       []*tier // all of them, if they are few
	byDefault *tier   // nil if there is none
}

// find returns the tier of that name, nil if there is none. To look through a handful takes
// half as long as to ask a map, and each check has to.
func (t *table) find(name string) *tier {
	if t.few == nil {
		return t.tiers[name]
	}
	for _, tier := range t.few {
		if tier.name == name {
			return tier
		}
	}
	return nil
}

// replace tells each tier of the table what takes its place in the next one.
func (t *table) replace(next *table) {
	for name, was := range t.tiers {
		if now := next.tiers[name]; now != nil {
			was.next.Store(now)
		} else {
			was.next.Store(new(tier))
		}
	}
}

// newTable validates tiers and reports everything that is wrong with them.
// The quick store is nil if there is none.
func newTable(tiers Tiers, defaultTier string, quick QuickStore) (*table, error) {
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
		if quick != nil {
			compiled.hash = quick.HashTier(name)
		}
		t.tiers[name] = compiled
	}
	const handful = 8
	if len(t.tiers) <= handful {
		t.few = slices.Collect(maps.Values(t.tiers))
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
		t.bursts = append(t.bursts, strconv.FormatInt(quota.rates[i].Burst, 10))
		if burst := limit.Burst(); i == 0 || burst < t.burst {
			t.burst = burst
		}
	}
	return t, nil
}
