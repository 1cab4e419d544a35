package clocktest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ratetier/ratetier/core/clocktest"
)

func Example() {
	clock := clocktest.New(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(clock.Advance(90 * time.Second))
	clock.Set(time.Date(2029, 12, 31, 23, 0, 0, 0, time.UTC))
	fmt.Println(clock.Now())
	// Output:
	// 2030-01-01 00:01:30 +0000 UTC
	// 2029-12-31 23:00:00 +0000 UTC
}

func TestAdvancesAddUpFromManyGoroutines(t *testing.T) {
	start := time.Unix(0, 0)
	clock := clocktest.New(start)
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			clock.Advance(2 * time.Second)
			clock.Advance(-time.Second)
			clock.Now()
		})
	}
	callers.Wait()
	if got := clock.Now().Sub(start); got != 100*time.Second {
		t.Errorf("the clock moved by %v, want 100s", got)
	}
}
