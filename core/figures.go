package ratetier

import (
	"strconv"
	"sync/atomic"
	"time"
)

// Figures spells Limit, Remaining and ResetAt as rate-limit headers have them: in decimal,
// the time in Unix seconds and rounded up. It is for adapters.
func (d *Decision) Figures() (limit, remaining, reset string) {
	at := time.Unix(0, d.wall+int64(d.ResetAfter+time.Second-1)).Unix()
	return d.spelledLimit(), strconv.FormatInt(d.Remaining, 10), seconds.spell(at, d.ResetAfter)
}

func (d *Decision) spelledLimit() string {
	if d.Measured() && d.tier != nil {
		return d.tier.bursts[d.rate]
	}
	return strconv.FormatInt(d.Limit, 10)
}

// seconds are shared by all limiters. Answers repeat the seconds to come, and spelling
// those anew is felt by every request.
var seconds memo

// memo keeps what the seconds to come look like, each in a place of its own. It is safe
// for concurrent use.
type memo [256]atomic.Pointer[spelling]

type spelling struct {
	second int64
	text   string
}

// spell returns the second in decimal. One further ahead than there are places is not
// kept, as it would take the place of one that is asked for more.
func (m *memo) spell(second int64, ahead time.Duration) string {
	if ahead > (time.Duration(len(m))-1)*time.Second {
		return strconv.FormatInt(second, 10)
	}
	place := &m[uint64(second)%uint64(len(m))]
	known := place.Load()
	if known == nil || known.second != second {
		known = &spelling{second, strconv.FormatInt(second, 10)}
		place.Store(known)
	}
	return known.text
}
