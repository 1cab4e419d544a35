package fallbackstore_test

import (
	"context"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/storetest"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
)

func TestConformanceWithAPrimary(t *testing.T) {
	var primary *fakePrimary
	storetest.Run(t, storetest.Subject{
		New: func() (ratetier.Store, error) {
			primary = newFakePrimary()
			return fallbackstore.New(primary, fallbackstore.Config{}), nil
		},
		Peer: func() (ratetier.Store, error) {
			return fallbackstore.New(primary, fallbackstore.Config{}), nil
		},
		Fail: func() { primary.failWith(errDown) },
	})
}

func TestConformanceDuringAnOutage(t *testing.T) {
	storetest.Run(t, storetest.Subject{New: func() (ratetier.Store, error) { return newDownStore(t), nil }})
}

func BenchmarkApplyDuringAnOutage(b *testing.B) {
	storetest.Bench(b, storetest.Subject{New: func() (ratetier.Store, error) { return newDownStore(b), nil }})
}

// downStore is a store in an outage that lasts. It hides what an outage adds to answers:
// that they are degraded, and that nothing is known of a reset of the primary.
type downStore struct {
	t     testing.TB
	store *fallbackstore.Store
}

func newDownStore(t testing.TB) downStore {
	t.Helper()
	primary := newFakePrimary()
	primary.failWith(errDown)
	store := fallbackstore.New(primary, fallbackstore.Config{Failures: 1, ProbeEvery: time.Hour})
	request := ratetier.Request{Key: ratetier.Key{Tier: "free", User: "first"}, Limits: limits(ratetier.PerMinute(1))}
	if err := store.Apply(t.Context(), &request, new(ratetier.Result)); err != nil || !store.Stats().Down {
		t.Errorf("the primary has failed: %+v, error %v, want an outage", store.Stats(), err)
	}
	return downStore{t, store}
}

func (d downStore) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	err := d.store.Apply(ctx, request, result)
	if !result.Degraded {
		d.t.Error("not degraded, though there is an outage")
	}
	result.Degraded = false
	return err
}

func (d downStore) Reset(ctx context.Context, key ratetier.Key) error {
	if err := d.store.Reset(ctx, key); err == nil {
		d.t.Error("no error, though the shared bucket was not reset")
	}
	return nil
}
