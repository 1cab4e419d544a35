package httplimit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
	"github.com/ratetier/ratetier/core/storetest"
)

func TestBodiesOfRefusals(t *testing.T) {
	const problemType = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	for _, step := range []struct {
		quota   string
		cost    int64
		plain   string
		problem string
	}{
		{
			"10/min burst 1", 1, `{"error":"rate limit exceeded","tier":"free","retry_after":6}`,
			`{"type":"` + problemType + `","title":"Too Many Requests","status":429,` +
				`"detail":"The quota of tier \"free\" allows this request in 6 s.","violated-policies":["free"],"retry_after":6}`,
		},
		{
			"2/s and 1/day", 1, `{"error":"rate limit exceeded","tier":"free","retry_after":86400}`,
			`{"type":"` + problemType + `","title":"Too Many Requests","status":429,` +
				`"detail":"The quota of tier \"free\" allows this request in 86400 s.","violated-policies":["free/day"],"retry_after":86400}`,
		},
		{
			"10/min", 11, `{"error":"request cost exceeds tier limit","tier":"free","cost":11,"limit":10}`,
			`{"type":"about:blank","title":"Forbidden","status":403,"detail":"The request costs 11, and tier \"free\" never allows more than 10 at once."}`,
		},
		{"blocked", 1, `{"error":"Forbidden"}`, `{"type":"about:blank","title":"Forbidden","status":403}`},
		{"10/min", -1, `{"error":"Internal Server Error"}`, `{"type":"about:blank","title":"Internal Server Error","status":500}`},
	} {
		limiter := newLimiter(step.quota)
		limiter.Charge(t.Context(), ana, 1)
		_, refusal := admit(limiter, config{Cost: costing(step.cost)}, request(http.MethodGet, "/"))
		if refusal.ContentType != "application/json" || string(refusal.Body) != step.plain {
			t.Errorf("%s, cost %d: %s %s\nwant %s", step.quota, step.cost, refusal.ContentType, refusal.Body, step.plain)
		}
		_, refusal = admit(limiter, config{Cost: costing(step.cost), Problem: true}, request(http.MethodGet, "/"))
		if refusal.ContentType != "application/problem+json" || string(refusal.Body) != step.problem {
			t.Errorf("%s, cost %d: %s %s\nwant %s", step.quota, step.cost, refusal.ContentType, refusal.Body, step.problem)
		}
	}
}

func TestBodiesOfRefusalsByPolicy(t *testing.T) {
	for _, step := range []struct {
		status int
		plain  string
		title  string
	}{
		{http.StatusUnauthorized, `{"error":"Unauthorized"}`, "Unauthorized"},
		{http.StatusServiceUnavailable, `{"error":"service unavailable"}`, "Service Unavailable"},
		{499, `{"error":"refused"}`, "refused"}, // has no name
	} {
		limiter := newLimiterWith(ratetier.Config{OnMissing: ratetier.Deny(step.status)}, "10/min")
		nobody := func(*http.Request) (ratetier.Identity, error) { return ratetier.Identity{}, ratetier.ErrNoIdentity }
		_, refusal := admit(limiter, config{Identify: nobody}, request(http.MethodGet, "/"))
		if string(refusal.Body) != step.plain {
			t.Errorf("%d: %s, want %s", step.status, refusal.Body, step.plain)
		}
		_, refusal = admit(limiter, config{Identify: nobody, Problem: true}, request(http.MethodGet, "/"))
		if want := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d}`, step.title, step.status); string(refusal.Body) != want {
			t.Errorf("%d: %s, want %s", step.status, refusal.Body, want)
		}
	}
}

func TestWriteSendsARefusal(t *testing.T) {
	refusal := &httplimit.Refusal{Status: http.StatusTooManyRequests, ContentType: "text/plain", Body: []byte("later")}
	for method, body := range map[string]string{http.MethodGet: "later", http.MethodPost: "later", http.MethodHead: ""} {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Encoding", "identity")
		refusal.Write(w, request(method, "/"))
		if w.Code != http.StatusTooManyRequests || w.Body.String() != body {
			t.Errorf("%s: %d %q, want %d %q", method, w.Code, w.Body, http.StatusTooManyRequests, body)
		}
		for name, want := range map[string]string{"Content-Type": "text/plain", "Content-Length": "5", "Content-Encoding": "identity"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", method, name, got, want)
			}
		}
	}
}

func FuzzRefusalsAreJSON(f *testing.F) {
	f.Add("free")
	f.Add("a\"b\\c\r\n\x00\u2028<script>é")
	f.Add("\xff\xfe")
	f.Fuzz(func(t *testing.T, tier string) {
		if tier == "" {
			t.Skip()
		}
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: storetest.Reference(),
			Tiers: ratetier.Tiers{tier: ratetier.Per(1, time.Hour).And(ratetier.PerDay(1))},
		}))
		identity := ratetier.Identity{User: "ana", Tier: tier}
		limiter.Charge(t.Context(), identity, 1)
		for _, problem := range []bool{false, true} {
			for _, cost := range []int64{1, 2} {
				_, refusal := admit(limiter, config{
					Identify: func(*http.Request) (ratetier.Identity, error) { return identity, nil },
					Cost:     costing(cost),
					Problem:  problem,
				}, request(http.MethodGet, "/"))
				var body struct {
					Tier     string   `json:"tier"`
					Type     string   `json:"type"`
					Violated []string `json:"violated-policies"`
				}
				if err := json.Unmarshal(refusal.Body, &body); err != nil {
					t.Fatalf("%s: %v", refusal.Body, err)
				}
				name := string([]rune(tier)) // with U+FFFD for what is not UTF-8, as in JSON
				switch {
				case !problem && body.Tier != name:
					t.Fatalf("%s: tier %q, want %q", refusal.Body, body.Tier, name)
				case problem && cost == 1:
					violated, err := url.PathUnescape(strings.Join(body.Violated, " and "))
					if err != nil || violated != tier+"/day" {
						t.Fatalf("%s: violated policies %q, %v, want %q", refusal.Body, violated, err, tier+"/day")
					}
				}
			}
		}
	})
}
