package gcra_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratetier/ratetier/core/gcra"
)

// A whole limiter for one user: the state is one number.
func Example() {
	limit, err := gcra.New(10, time.Minute, 10)
	if err != nil {
		panic(err)
	}
	tat, now := int64(0), time.Unix(1_800_000_000, 0).UnixNano()
	for _, cost := range []int64{8, 5, 1} {
		used := limit.Used(tat, now)
		if wait := limit.Wait(used, cost); wait > 0 {
			fmt.Printf("%d: refused, wait %v\n", cost, time.Duration(wait))
			continue
		}
		used = limit.Charge(used, cost)
		tat = now + used
		fmt.Printf("%d: allowed, %d left\n", cost, limit.Remaining(used))
	}
	// Output:
	// 8: allowed, 2 left
	// 5: refused, wait 18s
	// 1: allowed, 1 left
}

func BenchmarkTake(b *testing.B) {
	limit, err := gcra.New(1000, time.Second, 1000)
	if err != nil {
		b.Fatal(err)
	}
	tat, now := int64(0), int64(0)
	for b.Loop() {
		now += int64(time.Millisecond)
		used := limit.Used(tat, now)
		if limit.Remaining(used) < 1 {
			b.Fatal("refused")
		}
		tat = now + limit.Charge(used, 1)
	}
}
