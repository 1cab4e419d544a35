package ratetier_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/storetest"
)

func TestFiguresAreSpelledAsHeadersHaveThem(t *testing.T) {
	for _, step := range []struct {
		quota                   string
		now                     time.Time
		limit, remaining, reset string
	}{
		{"10/min", time.Unix(1000, 0), "10", "9", "1006"},
		{"10/min", time.Unix(1000, 1), "10", "9", "1007"},
		{"10/min", time.Unix(1000, 999_999_999), "10", "9", "1007"},
		{"2/s", time.Unix(1000, 500_000_000), "2", "1", "1001"},
		{"1/s", time.Unix(-8, 0), "1", "0", "-6"}, // before 1970, what is not there looks as if it came from later
		{"1/s burst 123456789", time.Unix(1_800_000_000, 0), "123456789", "123456788", "1800000001"},
	} {
		quota, err := ratetier.ParseQuota(step.quota)
		if err != nil {
			t.Fatal(err)
		}
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: storetest.Reference(), Tiers: ratetier.Tiers{"free": quota}, Clock: clocktest.New(step.now),
		}))
		d := limiter.Take(t.Context(), ana, 1)
		limit, remaining, reset := d.Figures()
		if limit != step.limit || remaining != step.remaining || reset != step.reset {
			t.Errorf("%s at %v: %s, %s, %s; want %s, %s, %s", step.quota, step.now,
				limit, remaining, reset, step.limit, step.remaining, step.reset)
		}
	}
}

// However many seconds are spelled, by however many goroutines, each is spelled as itself.
func TestFiguresAreNeverThoseOfAnother(t *testing.T) {
	var all sync.WaitGroup
	for ahead := range 4 {
		all.Go(func() {
			clock := clocktest.New(time.Unix(int64(1000+100*ahead), 0))
			limiter := ratetier.Must(ratetier.New(ratetier.Config{
				Store: storetest.Reference(), Tiers: ratetier.Tiers{"free": ratetier.PerHour(10)}, Clock: clock,
			}))
			for range 2000 {
				d := limiter.Take(t.Context(), ana, 0)
				_, _, reset := d.Figures()
				if want := strconv.FormatInt(d.ResetAt().Unix(), 10); reset != want {
					t.Errorf("a reset at %s is spelled %s", want, reset)
				}
				clock.Advance(time.Second)
			}
		})
	}
	all.Wait()
}
