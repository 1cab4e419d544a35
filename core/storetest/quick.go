package storetest

import (
	"context"

	ratetier "github.com/ratetier/ratetier/core"
)

// takeFirst asks a quick store as a limiter does.
type takeFirst struct{ ratetier.QuickStore }

func (s takeFirst) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	if request.Mode == ratetier.ModeTake && len(request.Limits) == 1 && ctx.Err() == nil {
		used, allowed, ok := s.Take(s.Hash(request.Key), request.Limits[0], request.Cost, request.Now)
		if ok {
			result.Allowed, result.Used[0] = allowed, used
			return nil
		}
	}
	return s.QuickStore.Apply(ctx, request, result)
}
