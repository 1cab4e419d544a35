package soak

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

const (
	// window is how long the bucket of every quota takes to fill. So no reload forgives
	// what was used, and one bound holds across all of them.
	window  = 2 * time.Second
	watched = 8

	// skew is how far the clock of Redis, read once for a batch of commands, may be off.
	skew = 50 * time.Millisecond
)

// bursts are those of the quotas. They are even, and parts of the window in whole
// microseconds.
var bursts = []int64{10, 20, 40, 50, 80}

// reload returns tiers with another quota, now and then of two rates. The second only
// refuses more, and its burst is odd, so that [account.add] knows it.
func reload(random *rand.Rand) ratetier.Tiers {
	next := tiers(bursts[random.IntN(len(bursts))])
	if random.IntN(4) == 0 {
		burst := 2*next["free"].Rates()[0].Burst + 1
		next["free"] = next["free"].And(ratetier.Per(burst, 2*window+window/2))
	}
	return next
}

func tiers(burst int64) ratetier.Tiers {
	return ratetier.Tiers{"free": ratetier.Per(burst, window), "crowd": crowdQuota}
}

// settles tells whether the admissions of that user are settled. Where a store falls back,
// they may be settled in another bucket than they were charged to.
func settles(user int) bool { return user%2 == 0 }

// account is what was admitted to one user, in the time that it takes to refill: a cell
// counts for more under a smaller quota. It knows nothing of how a limiter decides.
type account struct{ spent atomic.Int64 }

// add notes what was admitted where a decision told that limit.
func (a *account) add(limit, cells int64) {
	if limit%2 == 1 {
		limit = (limit - 1) / 2
	}
	a.spent.Add(cells * int64(window) / limit)
}

// books are the accounts of all watched users, each with what the guarantee allows.
type books struct {
	began  time.Time
	lost   atomic.Int64 // how often Redis has lost its buckets
	memory [watched]account
	shared [watched]account
	local  [instances][watched]account
}

func newBooks() *books { return &books{began: time.Now()} }

func (b *books) ofMemory(user int, _ bool) *account { return &b.memory[user] }

func (b *books) ofInstance(i int) func(user int, degraded bool) *account {
	return func(user int, degraded bool) *account {
		if degraded {
			return &b.local[i][user]
		}
		return &b.shared[user]
	}
}

// check sees that each account has spent at most one bucket and what has refilled since:
// in memory, in Redis with one bucket more for each time it lost them, and locally in each
// instance. What is settled in another store than it was charged to counts in their sum.
func (b *books) check(t *testing.T) {
	t.Helper()
	for user := range watched {
		memory, shared := b.memory[user].spent.Load(), b.shared[user].spent.Load()
		var local [instances]int64
		var sum int64
		for i := range local {
			local[i] = b.local[i][user].spent.Load()
			sum += local[i]
		}
		elapsed := time.Since(b.began) // read last, so that the bound is not below what holds
		bucket := int64(window + elapsed)
		inRedis := bucket + b.lost.Load()*int64(window) + int64(skew)
		within(t, user, "in memory", memory, bucket)
		if settles(user) {
			within(t, user, "in Redis and locally", shared+sum, inRedis+instances*bucket)
			continue
		}
		within(t, user, "in Redis", shared, inRedis)
		for _, spent := range local {
			within(t, user, "locally", spent, bucket)
		}
	}
}

func within(t *testing.T, user int, where string, spent, bound int64) {
	t.Helper()
	if spent > bound {
		t.Errorf("user %d was admitted %v of refill %s, want at most %v", user, time.Duration(spent), where, time.Duration(bound))
	}
}

// checkUse sees that the bounds were put to the test: all users have emptied their bucket
// in memory, and have been admitted something by Redis.
func (b *books) checkUse(t *testing.T) {
	t.Helper()
	for user := range watched {
		if spent := b.memory[user].spent.Load(); spent < int64(window)/2 {
			t.Errorf("user %d was admitted %v of refill in memory, which is no test", user, time.Duration(spent))
		}
		if b.shared[user].spent.Load() == 0 {
			t.Errorf("user %d was admitted nothing by Redis, which is no test", user)
		}
	}
}
