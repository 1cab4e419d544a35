//go:build !race

package httplimit_test

import (
	"context"
	"net/http"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// full is a store whose buckets are always full, and which allocates nothing.
type full struct{}

func (full) Apply(_ context.Context, request *ratetier.Request, result *ratetier.Result) error {
	var tats [ratetier.MaxRates]int64
	request.Apply(tats[:], result)
	return nil
}

func (full) Reset(context.Context, ratetier.Key) error { return nil }

func TestARequestAllocatesLittle(t *testing.T) {
	for _, step := range []struct {
		quota string
		want  float64
	}{
		{"10/min", 1},        // the admission, the request that carries it, the values of the headers
		{"10000/min", 1 + 1}, // and what is left, spelled
		{"10/s and 20/min", 1},
	} {
		quota, err := ratetier.ParseQuota(step.quota)
		if err != nil {
			t.Fatal(err)
		}
		limiter := ratetier.Must(ratetier.New(ratetier.Config{Store: full{}, Tiers: ratetier.Tiers{"free": quota}}))
		gate := guard(limiter, config{RouteCosts: httplimit.RouteCosts{"/reports": 5}})
		r, header := request(http.MethodGet, "/data"), http.Header{}
		got := testing.AllocsPerRun(1000, func() {
			clear(header)
			if _, refusal := gate.Admit(r, r, header); refusal != nil {
				t.Fatal(refusal)
			}
		})
		if got != step.want || len(header) != 3 {
			t.Errorf("%s: %v allocations, want %v, headers %v", step.quota, got, step.want, header)
		}
	}
}
