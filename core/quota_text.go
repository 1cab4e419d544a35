package ratetier

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The text form of a quota, for flags, environment variables, JSON, YAML and
// databases:
//
//	quota  = ( "unlimited" | "blocked" | rate { " and " rate } ) [ " shadow" ]
//	rate   = count "/" window [ " burst " count ]
//	window = "s" | "min" | "h" | "day" | days "day" | Go duration
//
// as in "10/min", "20/s burst 100 and 50000/day", "17/30s", "1000/30day".

const day = 24 * time.Hour

var windows = []struct {
	name   string
	period time.Duration
}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"day", day}}

// ParseQuota reads the text form of a quota: "10/min", "100/h burst 20",
// "20/s burst 100 and 50000/day", "17/30s", "1000/30day", "unlimited",
// "blocked", each optionally followed by " shadow". Windows are s, min, h, day, a
// number of days as in 7day, or a duration as [time.ParseDuration] reads it.
//
// Whatever else it is given, including "" and "0", is an error that says what to
// write. A quota it returns is valid.
func ParseQuota(text string) (Quota, error) {
	q, err := parseQuota(text)
	if err == nil {
		err = q.Validate()
	}
	if err != nil {
		return Quota{}, fmt.Errorf("ratetier: quota %q: %w", text, err)
	}
	return q, nil
}

func parseQuota(text string) (Quota, error) {
	text, shadow := strings.CutSuffix(text, " shadow")
	var q Quota
	switch text {
	case "unlimited":
		q = Unlimited()
	case "blocked":
		q = Blocked()
	default:
		for i, part := range strings.Split(text, " and ") {
			rate, err := parseRate(part)
			if err != nil {
				return Quota{}, err
			}
			if i == 0 {
				q = rate
			} else {
				q = q.And(rate)
			}
		}
	}
	if shadow {
		q = q.Shadow()
	}
	return q, nil
}

func parseRate(text string) (Quota, error) {
	rate, burstText, hasBurst := strings.Cut(text, " burst ")
	countText, window, ok := strings.Cut(rate, "/")
	if !ok {
		return Quota{}, errors.New(`write a rate such as "10/min" or "20/s burst 100", "unlimited" or "blocked"`)
	}
	count, err := parseCount(countText)
	if err != nil {
		return Quota{}, err
	}
	period, err := parseWindow(window)
	if err != nil {
		return Quota{}, err
	}
	q := Per(count, period)
	if hasBurst {
		burst, err := parseCount(burstText)
		if err != nil {
			return Quota{}, err
		}
		q = q.Burst(burst)
	}
	return q, nil
}

func parseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("%q is not a whole number up to %d", text, int64(1<<63-1))
	}
	return n, nil
}

func parseWindow(text string) (time.Duration, error) {
	for _, w := range windows {
		if text == w.name {
			return w.period, nil
		}
	}
	if number, ok := strings.CutSuffix(text, "day"); ok {
		days, err := parseCount(number)
		if err == nil && days > 0 && days <= int64(1<<63-1)/int64(day) {
			return time.Duration(days) * day, nil
		}
	} else if period, err := time.ParseDuration(text); err == nil {
		return period, nil
	}
	return 0, fmt.Errorf(`window %q: write s, min, h, day, days as in "7day" or a duration such as "30s"`, text)
}

// String returns the text form that [ParseQuota] reads, or a description in angle
// brackets where the quota has none.
func (q Quota) String() string {
	text, err := q.MarshalText()
	if err != nil {
		return "<invalid quota>"
	}
	return string(text)
}

// MarshalText returns the text form that [ParseQuota] reads. An invalid quota has
// none and is an error.
func (q Quota) MarshalText() ([]byte, error) {
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("ratetier: %w", err)
	}
	var text []byte
	switch q.kind {
	case quotaUnlimited:
		text = append(text, "unlimited"...)
	case quotaBlocked:
		text = append(text, "blocked"...)
	default:
		for i, rate := range q.rates {
			if i > 0 {
				text = append(text, " and "...)
			}
			text = rate.append(text)
		}
	}
	if q.shadow {
		text = append(text, " shadow"...)
	}
	return text, nil
}

// UnmarshalText reads the text form like [ParseQuota]. On an error the quota is
// left as it was.
func (q *Quota) UnmarshalText(text []byte) error {
	parsed, err := ParseQuota(string(text))
	if err == nil {
		*q = parsed
	}
	return err
}

// String returns the text form of the rate, such as "20/s burst 100".
func (r Rate) String() string { return string(r.append(nil)) }

// Window returns the text form of the period, such as "min" or "30s".
func (r Rate) Window() string { return windowText(r.Period) }

func (r Rate) append(text []byte) []byte {
	text = strconv.AppendInt(text, r.Count, 10)
	text = append(text, '/')
	text = append(text, r.Window()...)
	if r.Burst != r.Count {
		text = append(text, " burst "...)
		text = strconv.AppendInt(text, r.Burst, 10)
	}
	return text
}

func windowText(period time.Duration) string {
	for _, w := range windows {
		if period == w.period {
			return w.name
		}
	}
	if period > 0 && period%day == 0 {
		return strconv.FormatInt(int64(period/day), 10) + "day"
	}
	text := period.String()
	if strings.HasSuffix(text, "m0s") { // 90m0s, 1h30m0s
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
