package storetest_test

import (
	"context"
	"fmt"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/storetest"
)

// forgetful is a store that somebody wrote. It joins the fields of a key, so that
// some users share a bucket.
type forgetful struct{ ratetier.Store }

func (s forgetful) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	joined := *request
	joined.Key = ratetier.Key{User: request.Key.Tier + ":" + request.Key.User, Anonymous: request.Key.Anonymous}
	return s.Store.Apply(ctx, &joined, result)
}

func (s forgetful) Reset(ctx context.Context, key ratetier.Key) error {
	return s.Store.Reset(ctx, ratetier.Key{User: key.Tier + ":" + key.User, Anonymous: key.Anonymous})
}

// In a test, this is storetest.Run(t, subject).
func Example() {
	subject := storetest.Subject{
		New: func() (ratetier.Store, error) { return forgetful{storetest.Reference()}, nil },
	}
	fmt.Println(storetest.Check(context.Background(), subject))
	// Output:
	// broken promise: What it is kept under is all three fields of the Key, never confused:
	// 0s after the start, take 10 of 6s per cell and 1m0s in all for tier "a:b", user "c": refused with [0] left, want allowed with [0] left
	// 0s after the start, take 10 of 6s per cell and 1m0s in all for tier "1", user "a:b": refused with [0] left, want allowed with [0] left
	// 0s after the start, take 1 of 6s per cell and 1m0s in all for tier "a:b", user "c": allowed with [9] left, want refused with [0] left
	// 0s after the start, take 1 of 6s per cell and 1m0s in all for tier "1", user "a:b": allowed with [9] left, want refused with [0] left
}
