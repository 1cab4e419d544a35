package memorystore

import (
	"math/rand/v2"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
)

// A table that is asked, filled, purged and resized at random has what a map has.
func TestTableHoldsWhatAMapHolds(t *testing.T) {
	table := table{rates: 2}
	model := map[ratetier.Hash]tats{}
	random := rand.New(rand.NewPCG(1, 2))
	now := int64(0)
	for step := range 200_000 {
		now += random.Int64N(3)
		n := random.Uint64N(3000)
		h := ratetier.Hash{Lo: n<<32 + n/2 + 1} // few homes, so that probes are long and wrap around
		array := table.array.Load()
		at, ok := array.find(h)
		want, has := model[h]
		if ok && !has || !ok && has && want.full() > now {
			t.Fatalf("step %d: found is %t, want %t", step, ok, has)
		}
		switch {
		case !ok && random.IntN(2) == 0:
			bucket := tats{now + random.Int64N(2000), now + random.Int64N(2000)}
			table.insert(h, &bucket, now)
			model[h] = bucket
		case ok && holds(array, at) != want:
			t.Fatalf("step %d: found %v, want %v", step, holds(array, at), want)
		case ok && random.IntN(4) == 0:
			if last := table.remove(at); last != want {
				t.Fatalf("step %d: removed %v, want %v", step, last, want)
			}
			delete(model, h)
		case random.IntN(1000) == 0:
			table.purge(now)
		}
		if slots := table.array.Load().slots(); table.taken > slots/8*7 || table.live > table.taken {
			t.Fatalf("step %d: of %d slots %d are taken, %d live", step, slots, table.taken, table.live)
		}
	}
	live := 0
	for h, want := range model {
		at, ok := table.array.Load().find(h)
		if want.full() > now && (!ok || holds(table.array.Load(), at) != want) {
			t.Errorf("%v is lost", h)
		}
		if ok {
			live++
		}
	}
	if live == 0 || live != table.live {
		t.Errorf("%d buckets, want %d", table.live, live)
	}
}

// holds returns the TATs in the slot.
func holds(a *array, at int) tats {
	bucket, _ := a.load(at)
	return bucket
}
