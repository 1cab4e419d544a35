package fallbackstore

import (
	"context"
	"sync"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// share is one instance's part of a store's limits: each cell takes as many times as long to
// come back as there are instances, and the bucket as long to fill as ever. So what is
// used reads as if all instances had charged as this one has.
type share struct {
	ratetier.Store
	instances int64
	requests  sync.Pool // of *scaled
}

// shareOf returns the store itself where nothing is shared.
func shareOf(store ratetier.Store, instances int) ratetier.Store {
	if instances <= 1 {
		return store
	}
	s := &share{Store: store, instances: int64(instances)}
	s.requests.New = func() any { return new(scaled) }
	return s
}

// scaled is a request for the share, kept because handing one to a store makes it escape.
type scaled struct {
	request ratetier.Request
	limits  [ratetier.MaxRates]gcra.Limit
}

// Apply decides and charges one request against the share.
func (s *share) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	sc, _ := s.requests.Get().(*scaled)
	defer func() {
		*sc = scaled{}
		s.requests.Put(sc)
	}()
	tooMuch := sc.scale(request, s.instances)
	if err := s.Store.Apply(ctx, &sc.request, result); err != nil {
		return err
	}
	if tooMuch {
		result.Allowed = false
	}
	if !result.Allowed {
		sc.wait(request, result)
	}
	return nil
}

// scale makes the request one for the share. One that costs more than the share ever holds
// becomes a peek, and true is returned.
func (sc *scaled) scale(request *ratetier.Request, instances int64) (tooMuch bool) {
	sc.request = *request
	sc.request.Limits = sc.limits[:len(request.Limits)]
	for i, limit := range request.Limits {
		limit = shareOfLimit(limit, instances)
		sc.limits[i] = limit
		tooMuch = tooMuch || request.Mode == ratetier.ModeTake && request.Cost > limit.Burst()
	}
	if tooMuch {
		sc.request.Cost = 0
	}
	return tooMuch
}

// wait raises what is used, where the share refused, so that the limiter finds the wait
// that the share makes necessary: above a full bucket too, if it must. A cost that the
// share never holds waits as if it did, since the outage may be over by then.
func (sc *scaled) wait(request *ratetier.Request, result *ratetier.Result) {
	for i, limit := range request.Limits {
		scaled := sc.limits[i]
		if request.Cost > scaled.Burst() {
			result.Used[i] = limit.Offset
			continue
		}
		more := request.Cost * (scaled.Interval - limit.Interval)
		result.Used[i] += more
	}
}

// shareOfLimit returns the share of one limit, which holds one cell at least.
func shareOfLimit(limit gcra.Limit, instances int64) gcra.Limit {
	if limit.Interval > limit.Offset/instances {
		limit.Interval = limit.Offset
	} else {
		limit.Interval *= instances
	}
	return limit
}
