package storetest

import (
	"fmt"
	"strings"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

func describe(r *ratetier.Request) string {
	return fmt.Sprintf("%v after the start, %v %d of %s for %s",
		time.Duration(r.Now-start.UnixNano()), r.Mode, r.Cost, describeLimits(r.Limits), describeKey(r.Key))
}

func describeResult(r *ratetier.Result) string {
	used := make([]time.Duration, len(r.Used))
	for i := range used {
		used[i] = time.Duration(r.Used[i])
	}
	text := fmt.Sprintf("%s and used %v", verdict(r.Allowed), used)
	if r.Degraded {
		text += ", degraded"
	}
	return text
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "refused"
}

func describeLimits(limits []gcra.Limit) string {
	texts := make([]string, len(limits))
	for i, limit := range limits {
		texts[i] = fmt.Sprintf("%v per cell and %v in all", time.Duration(limit.Interval), time.Duration(limit.Offset))
	}
	return strings.Join(texts, ", ")
}

func describeKey(key ratetier.Key) string {
	text := fmt.Sprintf("tier %.40q, user %.40q", key.Tier, key.User)
	if key.Anonymous {
		text += ", anonymous"
	}
	return text
}
