package httplimit_test

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	"github.com/ratetier/ratetier/core/storetest"
)

const both = httplimit.XRateLimit | httplimit.IETF

func TestHeadersOfAnAnswer(t *testing.T) {
	for _, step := range []struct {
		quota      string
		costs      []int64 // the answer to the last is looked at
		x          string  // limit, remaining, seconds to the reset
		policy     string
		left       string
		retryAfter string
	}{
		{"10/min", []int64{1}, "10 9 6", `"free";q=10;w=60`, `"free";r=9;t=6`, ""},
		{"10/min", []int64{0}, "10 10 0", `"free";q=10;w=60`, `"free";r=10`, ""},
		{"10/min", []int64{10}, "10 0 60", `"free";q=10;w=60`, `"free";r=0;t=6`, ""},
		{"10/min", []int64{8, 5}, "10 2 48", `"free";q=10;w=60`, `"free";r=2;t=18`, "18"},
		{"10/min burst 20", []int64{15}, "20 5 90", `"free";q=20;w=120`, `"free";r=5;t=6`, ""},
		{"17/30s", []int64{1}, "17 16 2", `"free";q=17;w=30`, `"free";r=16;t=2`, ""},
		{"3/30h", []int64{1}, "3 2 36000", `"free";q=3;w=108000`, `"free";r=2;t=36000`, ""},
		// fractions of a second
		{"2/s", []int64{1}, "2 1 1", `"free";q=2;w=1`, `"free";r=1;t=1`, ""},
		{"2/s", []int64{2, 1}, "2 0 1", `"free";q=2;w=1`, `"free";r=0;t=1`, "1"},
		// several rates
		{"2/s and 10/min", []int64{1}, "2 1 1", `"free/s";q=2;w=1, "free/min";q=10;w=60`, `"free/s";r=1;t=1`, ""},
		{"8/s and 10/min", []int64{8, 3}, "8 0 1", `"free/s";q=8;w=1, "free/min";q=10;w=60`, `"free/s";r=0;t=6`, "6"},
		// more than 15 digits
		{
			"1000000000/s burst 2000000000000000000",
			[]int64{0},
			"2000000000000000000 2000000000000000000 0",
			`"free";q=999999999999999;w=2000000000`, `"free";r=999999999999999`, "",
		},
	} {
		limiter, header := newLimiter(step.quota), http.Header{}
		for _, cost := range step.costs {
			header, _ = admit(limiter, config{Headers: both, Cost: costing(cost)}, request(http.MethodGet, "/"))
		}
		reset, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
		if err != nil {
			t.Errorf("%s, costs %v: X-RateLimit-Reset: %v", step.quota, step.costs, err)
		}
		x := fmt.Sprintf("%s %s %d", header.Get("X-RateLimit-Limit"), header.Get("X-RateLimit-Remaining"), reset-start)
		for _, field := range []struct{ name, got, want string }{
			{"X-RateLimit", x, step.x},
			{"RateLimit-Policy", header.Get("RateLimit-Policy"), step.policy},
			{"RateLimit", header.Get("RateLimit"), step.left},
			{"Retry-After", header.Get("Retry-After"), step.retryAfter},
		} {
			if field.got != field.want {
				t.Errorf("%s, costs %v: %s is %q, want %q", step.quota, step.costs, field.name, field.got, field.want)
			}
		}
	}
}

func TestHeaderNamesAreCanonical(t *testing.T) {
	limiter := newLimiter("1/min")
	limiter.Charge(t.Context(), ana, 1)
	header, _ := admit(limiter, config{Headers: both}, request(http.MethodGet, "/"))
	var names []string
	for name := range header {
		names = append(names, name)
		if canonical := textproto.CanonicalMIMEHeaderKey(name); name != canonical {
			t.Errorf("header %q is stored under a name that Get does not find: want %q", name, canonical)
		}
	}
	slices.Sort(names)
	exposed := httplimit.ExposedHeaders()
	for i := range exposed {
		exposed[i] = textproto.CanonicalMIMEHeaderKey(exposed[i])
	}
	slices.Sort(exposed)
	if !slices.Equal(names, exposed) {
		t.Errorf("a 429 has %q, and ExposedHeaders are %q", names, exposed)
	}
}

func TestAppendingToAHeaderLeavesTheOthersAlone(t *testing.T) {
	header, _ := admit(newLimiter("10/min"), config{}, request(http.MethodGet, "/"))
	header.Add("X-RateLimit-Limit", "evil")
	if got := header.Values("X-RateLimit-Remaining"); len(got) != 1 || got[0] != "9" {
		t.Errorf("X-RateLimit-Remaining is %q after another header was added to, want 9", got)
	}
}

func TestChangingAHeaderLeavesOtherAnswersAlone(t *testing.T) {
	limiter := newLimiter("10/min")
	first, _ := admit(limiter, config{}, request(http.MethodGet, "/"))
	for name := range first {
		first[name][0] = "evil"
	}
	second, _ := admit(limiter, config{}, request(http.MethodGet, "/"))
	for name := range second {
		if second.Get(name) == "evil" {
			t.Errorf("%s has what the handler of another request wrote", name)
		}
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("free", int64(10), int64(time.Minute), int64(10), int64(3), int64(time.Second))
	f.Add("a\"\\\r\nX-Evil: é%41", int64(5), int64(time.Second), int64(1), int64(1), int64(20*time.Millisecond))
	f.Add("x", int64(1), int64(10*365*24*time.Hour), int64(1), int64(1), int64(1))
	f.Add("x", int64(1_000_000_000), int64(time.Second), int64(1<<60), int64(1<<59), int64(0))
	f.Add("x", int64(10), int64(13*time.Second), int64(1), int64(1), int64(1))
	f.Fuzz(func(t *testing.T, tier string, count, period, burst, cost, elapsed int64) {
		quota := ratetier.Per(count, time.Duration(period)).Burst(burst)
		if tier == "" || quota.Validate() != nil || cost < 0 || elapsed < 0 || elapsed > int64(24*time.Hour) {
			t.Skip()
		}
		clock := clocktest.New(time.Unix(start, elapsed/7))
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: storetest.Reference(), Tiers: ratetier.Tiers{tier: quota}, Clock: clock,
		}))
		ask := func() (http.Header, *httplimit.Refusal) {
			header, refusal := admit(limiter, config{
				Headers:  both,
				Identify: func(*http.Request) (ratetier.Identity, error) { return ratetier.Identity{User: "ana", Tier: tier}, nil },
				Cost:     costing(cost),
			}, request(http.MethodGet, "/"))
			checkHeader(t, header, tier, clock.Now())
			return header, refusal
		}
		for range 3 {
			header, refusal := ask()
			if refusal == nil {
				clock.Advance(time.Duration(elapsed))
				continue
			}
			if refusal.Decision.Outcome == ratetier.OutcomeCostTooHigh {
				if len(header) != 0 {
					t.Fatalf("a cost that never fits is answered with %v", header)
				}
				return
			}
			wait := header.Get("Retry-After")
			if !regexp.MustCompile(`^[0-9]+$`).MatchString(wait) {
				t.Fatalf("Retry-After is %q", wait)
			}
			seconds, err := strconv.ParseInt(wait, 10, 64)
			if err != nil || seconds < 1 {
				t.Fatalf("Retry-After is %q: %v", wait, err)
			}
			clock.Advance(time.Duration(seconds) * time.Second)
			if _, refusal := ask(); refusal != nil {
				t.Fatalf("refused after waiting %d s as told: %v", seconds, refusal)
			}
		}
	})
}

// checkHeader checks that the fields are well formed and agree with each other.
func checkHeader(t *testing.T, header http.Header, tier string, now time.Time) {
	t.Helper()
	if len(header) == 0 {
		return
	}
	x := map[string]int64{}
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		n, err := strconv.ParseInt(header.Get(name), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		x[name] = n
	}
	limit, remaining, reset := x["X-RateLimit-Limit"], x["X-RateLimit-Remaining"], x["X-RateLimit-Reset"]
	if limit < 1 || remaining < 0 || remaining > limit || reset < now.Unix() {
		t.Fatalf("limit %d, remaining %d, reset %d at %d", limit, remaining, reset, now.Unix())
	}
	policies, err := parseItems(header.Get("RateLimit-Policy"))
	if err != nil || len(policies) != 1 {
		t.Fatalf("RateLimit-Policy %q: %d items, %v", header.Get("RateLimit-Policy"), len(policies), err)
	}
	left, err := parseItems(header.Get("RateLimit"))
	if err != nil || len(left) != 1 {
		t.Fatalf("RateLimit %q: %d items, %v", header.Get("RateLimit"), len(left), err)
	}
	if q, w := policies[0].params["q"], policies[0].params["w"]; q != min(limit, most) || w < 1 {
		t.Fatalf("RateLimit-Policy %q, for a limit of %d", header.Get("RateLimit-Policy"), limit)
	}
	if r := left[0].params["r"]; r != min(remaining, most) {
		t.Fatalf("RateLimit %q, for %d remaining", header.Get("RateLimit"), remaining)
	}
	name, err := url.PathUnescape(policies[0].name)
	if err != nil || name != tier || left[0].name != policies[0].name {
		t.Fatalf("policies %q and %q for tier %q: %v", policies[0].name, left[0].name, tier, err)
	}
	if wait := header.Get("Retry-After"); wait != "" && wait != strconv.FormatInt(left[0].params["t"], 10) {
		t.Fatalf("RateLimit %q, and Retry-After %q", header.Get("RateLimit"), wait)
	}
}

// most is the greatest Integer of RFC 9651.
const most = 999_999_999_999_999

// item is a String with parameters that are Integers.
type item struct {
	name   string
	params map[string]int64
}

var parameter = regexp.MustCompile(`^;([a-z*][a-z0-9_.*-]*)=(-?[0-9]{1,15})`)

// parseItems parses a List of RFC 9651 whose members are Strings with Integers.
func parseItems(text string) ([]item, error) {
	var items []item
	for {
		var name strings.Builder
		rest, ok := strings.CutPrefix(text, `"`)
		if !ok {
			return nil, fmt.Errorf("at %q: no String begins here", text)
		}
		for rest != "" && rest[0] != '"' {
			if rest[0] == '\\' {
				rest = rest[1:]
				if rest == "" || rest[0] != '"' && rest[0] != '\\' {
					return nil, fmt.Errorf("at %q: this is not to be escaped", rest)
				}
			}
			if rest[0] < ' ' || rest[0] > '~' {
				return nil, fmt.Errorf("at %q: not printable ASCII", rest)
			}
			name.WriteByte(rest[0])
			rest = rest[1:]
		}
		if rest == "" {
			return nil, fmt.Errorf("at %q: the String does not end", text)
		}
		rest = rest[1:]
		params := map[string]int64{}
		for match := parameter.FindStringSubmatch(rest); match != nil; match = parameter.FindStringSubmatch(rest) {
			n, err := strconv.ParseInt(match[2], 10, 64)
			if err != nil {
				return nil, err
			}
			params[match[1]] = n
			rest = rest[len(match[0]):]
		}
		items = append(items, item{name.String(), params})
		if rest == "" {
			return items, nil
		}
		if text, ok = strings.CutPrefix(rest, ", "); !ok {
			return nil, fmt.Errorf("at %q: neither a parameter nor another item", rest)
		}
	}
}
