package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"

	ratetier "github.com/ratetier/ratetier/core"
)

// Reference returns the plainest store that keeps its promises: a map and a mutex.
// It is what the suite compares with, and a start for a store of your own. It is
// not for production: nothing bounds it, and all wait for one lock.
func Reference() ratetier.Store {
	return &reference{buckets: map[ratetier.Key][]int64{}}
}

type reference struct {
	mu      sync.Mutex
	buckets map[ratetier.Key][]int64 // their TATs
}

func (s *reference) Apply(_ context.Context, request *ratetier.Request, result *ratetier.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rates := len(request.Limits)
	tats, ok := s.buckets[request.Key]
	if !ok {
		tats = make([]int64, rates)
	} else if len(tats) != rates {
		carried := ratetier.Carry(tats, rates)
		tats = carried[:rates]
	}
	request.Apply(tats, result)
	if slices.Max(tats) <= request.Now {
		delete(s.buckets, request.Key)
		return nil
	}
	key := request.Key
	if !ok { // the strings are the caller's
		key.Tier, key.User = strings.Clone(key.Tier), strings.Clone(key.User)
	}
	s.buckets[key] = tats
	return nil
}

func (s *reference) Reset(_ context.Context, key ratetier.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets, key)
	return nil
}
