// Package memorystore keeps buckets in this process: exact, bounded, and without
// a goroutine. It is the store for a service of one instance, for tests, and behind
// a shared store that is down.
//
//	limiter, err := ratetier.New(ratetier.Config{
//		Store: memorystore.New(),
//		...
//	})
//
// Several instances, each with a store of its own, admit several times the quota;
// package redisstore shares one.
package memorystore

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// DefaultMaxBuckets is the cap on buckets where [Config] names none: about 34 MB.
const DefaultMaxBuckets = 1 << 20

// Config is all there is to say about a [Store]. The zero Config is ready to use.
type Config struct {
	// MaxBuckets caps how many buckets are kept, which is 18 to 43 bytes each for
	// a quota of one rate, and 9 to 21 more for each further rate. It is met to
	// within the evenness of a hash, never exceeded, and rounded up to a multiple
	// of 256. By default [DefaultMaxBuckets].
	MaxBuckets int

	// OnEvict is told each bucket that was dropped before it was full, because the
	// cap was reached and no full one could go instead: its user starts afresh. It
	// is called by the goroutine that needed the room, outside any lock. By default
	// nobody is told; [Store.Stats] counts them all the same.
	OnEvict func(Eviction)
}

// Eviction is the loss of one bucket that was in use.
type Eviction struct {
	// FullIn is how long until the bucket would have been full by itself.
	FullIn time.Duration
}

// Stats is what a store holds.
type Stats struct {
	// Buckets is how many buckets are kept, those that have become full and are
	// not dropped yet among them.
	Buckets int

	// Evictions is how many buckets in use were dropped since the store was made.
	Evictions uint64
}

// Store is a [ratetier.Store] in memory. Buckets are kept by a hash under a key of the
// process, never by the user's name: of 72 to 79 bits, so that any two of a million users
// share a bucket with a chance of one in billions. A bucket is dropped once it is full,
// when room is needed; at the cap, the fullest of a few goes. It is safe for concurrent
// use, starts no goroutine and needs no closing.
type Store struct {
	seeds   [3]maphash.Seed
	shards  []shard
	shift   int // what is left of a hash after it is the shard's index
	onEvict func(Eviction)
}

var _ ratetier.QuickStore = (*Store)(nil)

// New returns a store with the default configuration.
func New() *Store {
	store, err := NewWith(Config{})
	if err != nil {
		panic(err) // the zero Config is valid
	}
	return store
}

// NewWith returns a store with that configuration. It is an error if MaxBuckets is
// negative.
func NewWith(config Config) (*Store, error) {
	if config.MaxBuckets < 0 {
		return nil, fmt.Errorf("memorystore: MaxBuckets %d: must be positive, or 0 for %d", config.MaxBuckets, DefaultMaxBuckets)
	}
	if config.MaxBuckets == 0 {
		config.MaxBuckets = DefaultMaxBuckets
	}
	s := &Store{onEvict: config.OnEvict}
	for i := range s.seeds {
		s.seeds[i] = maphash.MakeSeed()
	}
	// A shard stays so small that going through the whole of it is a matter of
	// microseconds; there are enough of them that few checks meet.
	const minShards, maxShards, perShard = 1 << 8, 1 << 15, 1 << 11
	shards := minShards
	for shards < maxShards && shards*perShard < config.MaxBuckets {
		shards *= 2
	}
	s.shards = make([]shard, shards)
	s.shift = 64 - bits.TrailingZeros(uint(shards))
	for i := range s.shards {
		s.shards[i].init((config.MaxBuckets-1)/shards + 1)
	}
	return s, nil
}

// Apply decides and charges one request. It does not wait, so it does not look at
// the context; it never fails.
func (s *Store) Apply(_ context.Context, request *ratetier.Request, result *ratetier.Result) error {
	h := s.hash(request.Key)
	shard := s.shard(h)
	if request.Mode == ratetier.ModeTake && len(request.Limits) == 1 {
		if used, allowed, ok := shard.take(h, request.Limits[0], request.Cost, request.Now); ok {
			result.Allowed, result.Used[0] = allowed, used
			return nil
		}
	}
	shard.mu.Lock()
	evicted := shard.apply(h, request, result)
	shard.mu.Unlock()
	if evicted > 0 && s.onEvict != nil {
		s.onEvict(Eviction{FullIn: evicted})
	}
	return nil
}

// Itself returns the store, see [ratetier.QuickStore].
func (s *Store) Itself() ratetier.Store { return s }

// Take decides and charges a take from a bucket of one rate, without a lock. It returns ok
// false, with nothing done, if the bucket is not there, or is to be full sooner than it
// was.
func (s *Store) Take(h ratetier.Hash, limit gcra.Limit, cost, now int64) (used int64, allowed, ok bool) {
	return s.shard(h).take(h, limit, cost, now)
}

// Reset makes the bucket full. It never fails.
func (s *Store) Reset(_ context.Context, key ratetier.Key) error {
	h := s.hash(key)
	shard := s.shard(h)
	shard.mu.Lock()
	shard.drop(h)
	shard.mu.Unlock()
	return nil
}

// Stats returns what the store holds, counted shard by shard while it is in use.
func (s *Store) Stats() Stats {
	var stats Stats
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		stats.Buckets += shard.buckets()
		stats.Evictions += shard.evictions
		shard.mu.Unlock()
	}
	return stats
}

func (s *Store) hash(key ratetier.Key) ratetier.Hash {
	return s.Hash(s.HashTier(key.Tier), key.User, key.Anonymous)
}

// HashTier returns what [Store.Hash] is given for the tier.
func (s *Store) HashTier(tier string) ratetier.Hash {
	hash := maphash.String(s.seeds[2], tier)
	return ratetier.Hash{Hi: hash, Lo: bits.RotateLeft64(hash, 32)}
}

// Hash returns what the bucket of a user in a tier is kept under: one half tells the shard,
// the other the bucket in it. Users and tiers are hashed under seeds of their own, so that
// moving characters from one to the other makes another hash.
func (s *Store) Hash(tier ratetier.Hash, user string, anonymous bool) ratetier.Hash {
	h := ratetier.Hash{
		Hi: maphash.String(s.seeds[0], user) ^ tier.Hi,
		Lo: maphash.String(s.seeds[1], user) ^ tier.Lo,
	}
	if anonymous {
		h.Lo = ^h.Lo
	}
	if h.Lo == 0 {
		h.Lo = 1 // no bucket is kept under zero
	}
	return h
}

// shard returns the shard that the hash belongs to.
func (s *Store) shard(h ratetier.Hash) *shard { return &s.shards[h.Hi>>s.shift] }
