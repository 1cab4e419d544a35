package storetest

import (
	"context"

	ratetier "github.com/ratetier/ratetier/core"
)

// takeFirst asks a quick store as a limiter does.
type takeFirst struct{ ratetier.QuickStore }

func (s takeFirst) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	if request.Mode == ratetier.ModeTake && len(request.Limits) == 1 && ctx.Err() == nil {
		key := request.Key
		hash := s.Hash(s.HashTier(key.Tier), key.User, key.Anonymous)
		used, allowed, ok := s.Take(hash, request.Limits[0], request.Cost, request.Now)
		if ok {
			result.Allowed, result.Used[0] = allowed, used
			return nil
		}
	}
	return s.QuickStore.Apply(ctx, request, result)
}
