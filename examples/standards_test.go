package examples_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// policies are the tiers asked, and their policies as the draft has them: name, quota and
// window, and what is left after one request.
var policies = map[string]struct {
	quota ratetier.Quota
	want  string
	left  string
}{
	"free":          {ratetier.PerMinute(2), "free q=2 w=60", "free r=1 t=30"},
	"pro":           {ratetier.PerSecond(20).Burst(2).And(ratetier.PerDay(50_000)), "pro/s q=2 w=1, pro/day q=50000 w=86400", "pro/s r=1 t=1"},
	"four":          {ratetier.PerSecond(5).And(ratetier.PerMinute(9)).And(ratetier.PerHour(8)).And(ratetier.PerDay(2)), "four/s q=5 w=1, four/min q=9 w=60, four/h q=8 w=3600, four/day q=2 w=86400", "four/day r=1 t=43200"},
	`quo"te`:        {ratetier.PerMinute(2), `quo"te q=2 w=60`, `quo"te r=1 t=30`},
	`back\slash`:    {ratetier.PerMinute(2), `back\slash q=2 w=60`, `back\slash r=1 t=30`},
	`\"`:            {ratetier.PerMinute(2), `\" q=2 w=60`, `\" r=1 t=30`},
	"élite 金":       {ratetier.PerMinute(2), "élite 金 q=2 w=60", "élite 金 r=1 t=30"},
	"50% off;a=1,b": {ratetier.PerMinute(2), "50% off;a=1,b q=2 w=60", "50% off;a=1,b r=1 t=30"},
	"line\r\nbreak": {ratetier.PerMinute(2), "line\r\nbreak q=2 w=60", "line\r\nbreak r=1 t=30"},
	"huge":          {ratetier.Per(2_000_000_000_000_000, 20*365*24*time.Hour).Burst(2), "huge q=2 w=1", "huge r=1 t=1"},
}

// The fields are read with a parser of structured fields that is not ours, from the
// answers of a server.
func TestFieldsAndProblemsAreAsTheStandardsSay(t *testing.T) {
	tiers := ratetier.Tiers{}
	for name, policy := range policies {
		tiers[name] = policy.quota
	}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(), Tiers: tiers, Clock: clocktest.New(time.Unix(0, 0)),
	}))
	server := httptest.NewServer(ratetierhttp.Middleware(limiter, ratetierhttp.Config{
		Identify: func(r *http.Request) (ratetier.Identity, error) {
			return ratetier.Identity{User: "ana", Tier: r.URL.Query().Get("tier")}, nil
		},
		Headers: httplimit.XRateLimit | httplimit.IETF,
		Problem: true,
	})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()

	for name, policy := range policies {
		ask := func() (*http.Response, string) {
			response, body := fetch(t, server.URL+"/?tier="+url.QueryEscape(name))
			if got := fields(t, response.Header, "RateLimit-Policy", "q", "w"); got != policy.want {
				t.Errorf("%q: policy %q, want %q", name, got, policy.want)
			}
			for field := range response.Header {
				if strings.Contains(field, "Rate") || field == "Retry-After" {
					if !slices.ContainsFunc(httplimit.ExposedHeaders(), func(exposed string) bool { return strings.EqualFold(exposed, field) }) {
						t.Errorf("%s is not among the exposed headers", field)
					}
				}
			}
			return response, body
		}
		first, _ := ask()
		if got := fields(t, first.Header, "RateLimit", "r", "t"); first.StatusCode != 200 || got != policy.left {
			t.Errorf("%q: status %d, left %q, want %q", name, first.StatusCode, got, policy.left)
		}
		ask()
		refused, body := ask()
		limit := item(t, refused.Header, "RateLimit")
		wait, _ := limit.Params.Get("t")
		left, _ := limit.Params.Get("r")
		if refused.StatusCode != 429 || left != int64(0) || fmt.Sprint(wait) != refused.Header.Get("Retry-After") {
			t.Errorf("%q: status %d, r %v, t %v, want that of Retry-After %q", name, refused.StatusCode, left, wait, refused.Header.Get("Retry-After"))
		}
		problem := struct {
			Type     string
			Title    string
			Status   int
			Violated []string `json:"violated-policies"`
		}{}
		if err := json.Unmarshal([]byte(body), &problem); err != nil {
			t.Errorf("%q: %v: %s", name, err, body)
		}
		if refused.Header.Get("Content-Type") != "application/problem+json" || problem.Status != 429 || problem.Title == "" ||
			problem.Type != "https://iana.org/assignments/http-problem-types#quota-exceeded" {
			t.Errorf("%q: not the problem of the draft: %s", name, body)
		}
		if !slices.Equal(problem.Violated, []string{limit.Value.(string)}) {
			t.Errorf("%q: violated is %q, where the field names the policy %q", name, problem.Violated, limit.Value)
		}
	}
}

// fields returns the members of a list: the name of each policy, and its parameters, all of
// which must be there and no others.
func fields(t *testing.T, header http.Header, field string, params ...string) string {
	t.Helper()
	list, err := httpsfv.UnmarshalList(header.Values(field))
	if err != nil {
		t.Fatalf("%s: %q: %v", field, header.Values(field), err)
	}
	var members []string
	for _, member := range list {
		policy, ok := member.(httpsfv.Item)
		name, isString := policy.Value.(string)
		if !ok || !isString || !slices.Equal(policy.Params.Names(), params) {
			t.Fatalf("%s: %q: want Strings with %v", field, header.Values(field), params)
		}
		name, err := url.PathUnescape(name)
		if err != nil {
			t.Errorf("%s: %q: %v", field, header.Values(field), err)
		}
		words := []string{name}
		for _, param := range params {
			value, _ := policy.Params.Get(param)
			words = append(words, fmt.Sprintf("%s=%d", param, value))
		}
		members = append(members, strings.Join(words, " "))
	}
	return strings.Join(members, ", ")
}

// item returns the one member of a list.
func item(t *testing.T, header http.Header, field string) httpsfv.Item {
	t.Helper()
	list, err := httpsfv.UnmarshalList(header.Values(field))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %q: %v", field, header.Values(field), err)
	}
	return list[0].(httpsfv.Item)
}

func fetch(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}
