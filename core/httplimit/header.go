package httplimit

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// Headers says which rate-limit headers answers carry, allowed and refused alike.
// XRateLimit and IETF can be combined with |. A 429 has a Retry-After in any case.
type Headers uint8

const (
	// XRateLimit sends X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset, which is in Unix seconds: when the bucket is full again.
	XRateLimit Headers = 1 << iota

	// IETF sends RateLimit-Policy and RateLimit, structured fields as in
	// draft-ietf-httpapi-ratelimit-headers-11. The policies are the tier's rates:
	// named by the tier, and by the window too where there are several; q is the
	// burst and w the seconds in which a whole burst refills. RateLimit has the
	// rate with the least left: r is what remains, and t the seconds until there
	// is more, or on a 429 the same as Retry-After.
	IETF

	// NoHeaders sends neither.
	NoHeaders
)

// The names in canonical form, since a map of headers is only found by those.
const (
	headerLimit     = "X-Ratelimit-Limit"
	headerRemaining = "X-Ratelimit-Remaining"
	headerReset     = "X-Ratelimit-Reset"
	headerPolicy    = "Ratelimit-Policy"
	headerRateLimit = "Ratelimit"
)

// ExposedHeaders returns the names of all headers that adapters can send, for the
// Access-Control-Expose-Headers of a CORS middleware: without it, scripts in
// browsers do not see them.
func ExposedHeaders() []string {
	return []string{"Retry-After", "RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
}

func (h Headers) validate() error {
	if h > NoHeaders {
		return fmt.Errorf("Headers %d: must be XRateLimit, IETF, XRateLimit|IETF or NoHeaders", h)
	}
	return nil
}

// figures is the room for the values of three headers: nobody else's, as a handler may
// change a value.
type figures [3]string

// set writes the decision's figures, if it has any.
func (h Headers) set(header http.Header, d *ratetier.Decision, values *figures) {
	if !d.Measured() {
		return
	}
	if h == 0 || h&XRateLimit != 0 {
		setXRateLimit(header, d, values)
	}
	if h&IETF != 0 {
		setIETF(header, d)
	}
}

// clearHeaders removes what limiters before this one have set.
func clearHeaders(header http.Header) {
	for _, name := range [...]string{headerLimit, headerRemaining, headerReset, headerPolicy, headerRateLimit} {
		delete(header, name)
	}
}

// setXRateLimit leaves no room behind a value, as a handler may add one.
func setXRateLimit(header http.Header, d *ratetier.Decision, values *figures) {
	values[0], values[1], values[2] = d.Figures()
	header[headerLimit] = values[0:1:1]
	header[headerRemaining] = values[1:2:2]
	header[headerReset] = values[2:3:3]
}

func setIETF(header http.Header, d *ratetier.Decision) {
	quota := d.Quota()
	var policy strings.Builder
	for i, rate := range quota.Rates() {
		if i > 0 {
			policy.WriteString(", ")
		}
		fmt.Fprintf(&policy, "%s;q=%d;w=%d", sfString(policyName(d, rate)), sfInteger(rate.Burst), sfInteger(window(rate)))
	}
	header[headerPolicy] = []string{policy.String()}

	item := fmt.Sprintf("%s;r=%d", sfString(policyName(d, d.Rate())), sfInteger(d.Remaining))
	if next := max(seconds(d.RetryAfter), seconds(d.NextAfter())); next > 0 {
		item += fmt.Sprintf(";t=%d", sfInteger(next))
	}
	header[headerRateLimit] = []string{item}
}

// window returns the seconds in which a whole burst of the rate refills, rounded up.
func window(rate ratetier.Rate) int64 {
	const ofRounding = 1e-9
	refill := rate.Period.Seconds() * float64(rate.Burst) / float64(rate.Count)
	return max(1, int64(math.Ceil(refill-ofRounding)))
}

// policyName names one rate of the tier, in the fields and in problem details alike. Of
// the tier's name, it percent-encodes what a String of RFC 9651 cannot hold.
func policyName(d *ratetier.Decision, rate ratetier.Rate) string {
	name := printable(d.Tier)
	if len(d.Quota().Rates()) == 1 {
		return name
	}
	return name + "/" + rate.Window()
}

// printable percent-encodes all bytes but those of printable ASCII, and the percent sign.
func printable(s string) string {
	var out []byte
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			out = fmt.Appendf(out, "%%%02X", c)
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// quote escapes what ends a String of RFC 9651.
var quote = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// sfString renders printable ASCII as a String of RFC 9651.
func sfString(s string) string { return `"` + quote.Replace(s) + `"` }

// sfInteger keeps a number within the 15 digits of an Integer of RFC 9651.
func sfInteger(n int64) int64 { return min(n, 999_999_999_999_999) }

// seconds returns whole seconds, rounded up: a client that waits that long has
// waited long enough.
func seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}
