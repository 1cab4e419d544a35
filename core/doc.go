// Package ratetier limits requests by plan: free with a low limit, pro with a higher
// one, enterprise without.
//
// # Guarantee
//
// Over any span of time t, a user of a tier of n cells per period p with burst b is
// admitted at most b + n x t / p cells, of all limiters that share a store. A request
// that is refused is charged nothing. One that waits as long as it is told gets through,
// if nothing else of the same user does in between.
//
// The algorithm is GCRA (package gcra), exact to the nanosecond: one number per bucket,
// even refill, no window at whose edge a user gets twice the limit.
//
// # A limiter
//
//	limiter, err := ratetier.New(ratetier.Config{
//		Store: memorystore.New(),
//		Tiers: ratetier.Tiers{
//			"free":       ratetier.PerMinute(10),
//			"pro":        ratetier.PerSecond(20).Burst(100).And(ratetier.PerDay(50_000)),
//			"enterprise": ratetier.Unlimited(),
//		},
//		DefaultTier: "free",
//	})
//
//	d := limiter.Take(ctx, ratetier.Identity{User: "ana", Tier: "free"}, 1)
//	if !d.Allowed {
//		// d.Outcome says why, d.RetryAfter how long to wait.
//	}
//
// The package is imported by its name:
//
//	import ratetier "github.com/ratetier/ratetier/core"
//
// # Choosing a store
//
// The [Store] keeps the buckets: memorystore in this process, for one instance; redisstore
// in Redis, for any number of instances that share one limit. Each is a module of its own,
// under github.com/ratetier/ratetier/stores.
//
// # Choosing an adapter
//
// An adapter is the middleware of a framework: ratetierhttp for net/http, ratetiergin,
// ratetierecho, ratetierchi and ratetiergrpc, each a module of its own under
// github.com/ratetier/ratetier/adapters. All HTTP adapters share the Config of package
// httplimit. Without a framework, [Limiter.Take] is all there is to it; [Limiter.Admit]
// also returns an [Admission], with which work of unknown cost is settled when it is done.
//
// # Who is asking
//
// An [Identity] is a user and a tier. Where there is none, where its tier is not in the
// table, where the look-up failed or the store does, a [Policy] decides, and its default
// is safe: unknown never means unlimited. The [Outcome] of a [Decision] says what was
// found, whatever the policy made of it, and an [Observer] is told each decision.
//
// # Tiers
//
// A [Quota] has one to four rates that must all agree. [Tiers] read from JSON, YAML or a
// database as text ("20/s burst 100 and 50000/day"), and [Limiter.SetTiers] replaces them
// while serving. [Quota.Shadow] tries a limit on real traffic without enforcing it.
//
// # Extending
//
// A store of your own implements two methods and keeps eleven promises, which package
// storetest checks. An adapter of your own is one function around package httplimit, which
// package httplimittest checks over a real socket. Tests use the clock of package
// clocktest.
package ratetier
