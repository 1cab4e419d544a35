package soak

import (
	"context"
	"strconv"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// million is how many users the crowd is.
const million = 1_000_000

// crowdQuota is the quota of each of them, and stays: it takes so long to refill that all
// their buckets have to be kept.
var crowdQuota = ratetier.PerHour(2)

// crowd asks for a million users, one after the other, again and again.
type crowd struct {
	t        *testing.T
	limiter  *ratetier.Limiter
	began    time.Time
	admitted []int64 // to each user
	next     int
}

func (c *crowd) ask() {
	user := c.next
	c.next = (c.next + 1) % million
	identity := ratetier.Identity{User: "one of a million: " + strconv.Itoa(user), Tier: "crowd"}
	d := c.limiter.Take(context.Background(), identity, 1)
	if d.Outcome != ratetier.OutcomeAllowed {
		if d.Outcome != ratetier.OutcomeLimited || c.admitted[user] < 2 {
			c.t.Errorf("%v, %v: one of a million users, after %d were admitted", d.Outcome, d.Err, c.admitted[user])
		}
		return
	}
	c.admitted[user]++
	if c.admitted[user] > 2 && c.admitted[user] > 2+int64(2*time.Since(c.began)/time.Hour) {
		c.t.Errorf("one of a million users was admitted %d in %v", c.admitted[user], time.Since(c.began))
	}
}
