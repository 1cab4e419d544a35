package memorystore

import (
	"math/rand/v2"
	"testing"
)

// A table that is asked, filled, purged and resized at random has what a map has.
func TestTableHoldsWhatAMapHolds(t *testing.T) {
	type entry struct{ tats [2]int64 }
	table := table{stride: header + 2}
	model := map[hash]entry{}
	random := rand.New(rand.NewPCG(1, 2))
	key := func() hash { // few homes, so that probes are long and wrap around
		n := random.Uint64N(3000)
		return hash{hi: n | 1, lo: n / 2}
	}
	now := int64(0)
	for step := range 200_000 {
		now += random.Int64N(3)
		h := key()
		at, ok := table.find(h)
		want, has := model[h]
		if ok && !has || !ok && has && full(want.tats[:]) > now {
			t.Fatalf("step %d: found is %t, want %t", step, ok, has)
		}
		switch {
		case !ok && random.IntN(2) == 0:
			e := entry{[2]int64{now + random.Int64N(2000), now + random.Int64N(2000)}}
			delete(model, h)
			table.insert(h, e.tats[:], now)
			model[h] = e
		case ok && [2]int64(table.tats(at)) != want.tats:
			t.Fatalf("step %d: found %v, want %v", step, table.tats(at), want.tats)
		case ok && random.IntN(4) == 0:
			table.remove(at)
			delete(model, h)
		}
		if table.len > table.cap()/8*7 {
			t.Fatalf("step %d: %d of %d slots are used", step, table.len, table.cap())
		}
	}
	for h, e := range model {
		if at, ok := table.find(h); full(e.tats[:]) > now && (!ok || [2]int64(table.tats(at)) != e.tats) {
			t.Errorf("%v is lost", h)
		}
	}
	if table.len == 0 {
		t.Error("nothing is left to find")
	}
}
