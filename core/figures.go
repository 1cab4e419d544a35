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
	return spellings.of(d.Limit), strconv.FormatInt(d.Remaining, 10), spellings.of(at)
}

// spellings are shared by all limiters. Answers repeat a few limits and the seconds to come,
// and spelling those anew is felt by every request.
var spellings memo

// memo keeps what numbers look like, each until another of its place is asked for. It is
// safe for concurrent use.
type memo [256]atomic.Pointer[spelling]

type spelling struct {
	number int64
	text   string
}

func (m *memo) of(number int64) string {
	place := &m[uint64(number)%uint64(len(m))]
	known := place.Load()
	if known == nil || known.number != number {
		known = &spelling{number, strconv.FormatInt(number, 10)}
		place.Store(known)
	}
	return known.text
}
