package httplimittest

import (
	"context"
	"errors"
	"sync"

	ratetier "github.com/ratetier/ratetier/core"
)

// store is the plainest store: a map and a mutex.
type store struct {
	mu   sync.Mutex
	tats map[ratetier.Key][]int64
}

func newStore() *store { return &store{tats: map[ratetier.Key][]int64{}} }

func (s *store) Apply(_ context.Context, request *ratetier.Request, result *ratetier.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tats := s.tats[request.Key]
	if tats == nil {
		tats = make([]int64, len(request.Limits))
		s.tats[request.Key] = tats
	}
	request.Apply(tats, result)
	return nil
}

func (s *store) Reset(_ context.Context, key ratetier.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tats, key)
	return nil
}

// brokenStore is one that never answers.
type brokenStore struct{}

var errStore = errors.New("httplimittest: the store is broken")

func (brokenStore) Apply(context.Context, *ratetier.Request, *ratetier.Result) error { return errStore }

func (brokenStore) Reset(context.Context, ratetier.Key) error { return errStore }
