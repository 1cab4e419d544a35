package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

func TestTheSameTableIsReadFromYAMLAndJSON(t *testing.T) {
	for _, text := range []string{
		"free: 10/min\n\"a b\": 20/s burst 100 and 50000/day\n",
		"# plans\nfree: \"10/min\"\na b: 20/s burst 100 and 50000/day # a comment\n",
		`{"free": "10/min", "a b": "20/s burst 100 and 50000/day"}`,
		"{\n\t\"free\": \"10/min\",\n\t\"a\\u0020b\": \"20/s burst 100 and 50000/day\"\n}\n",
	} {
		tiers, err := parse([]byte(text))
		if got := fmt.Sprint(tiers); err != nil || got != "map[a b:20/s burst 100 and 50000/day free:10/min]" {
			t.Errorf("%s\ngot %v, %v", text, got, err)
		}
	}
}

// bad are files that must change nothing, and what is said of them.
var bad = map[string]string{
	"":                                "no tiers",
	"# nothing\n":                     "no tiers",
	"free: 10/fortnight\n":            `quota "10/fortnight": window "fortnight"`,
	"free: 10\n":                      `quota "10": write a rate such as "10/min"`,
	"free: 0/min\n":                   "count 0: must be at least 1",
	"free:\n":                         `tier "free"`,
	`{"free": null}`:                  `tier "free"`,
	"free: unlimited\n":               `default tier "free" is unlimited`,
	"pro: 10/min\n":                   `default tier "free" is not among the tiers ["pro"]`,
	"free: 10/min\nfree: 20/min\n":    `"free" already defined`,
	"free: 10/min\n---\npro: 1/min\n": "more than one document",
	`{"free": "10/min"} {`:            "not allowed",
	"free: [10/min]\n":                "",
	"free: 10/m":                      `window "m"`, // written in part
	"\x00\xff":                        "",
}

func TestABadFileChangesNothingAndSaysWhy(t *testing.T) {
	plans, log := newFile(t, "free: 10/min\npro: 100/min\n")
	bea := ratetier.Identity{User: "bea", Tier: "pro"}
	plans.limiter.Take(t.Context(), bea, 40)
	for text, why := range bad {
		log.Reset()
		write(t, plans.path, text)
		plans.reload()
		if said := log.String(); !strings.Contains(said, ": still on the old plans: ") || !strings.Contains(said, why) {
			t.Errorf("%q: said %q, want %q", text, said, why)
		}
		if d := plans.limiter.Peek(t.Context(), bea); d.Limit != 100 || d.Remaining != 60 {
			t.Errorf("%q: %d of %d left, want 60 of 100", text, d.Remaining, d.Limit)
		}
		if _, err := open(plans.path, io.Discard); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: a service starts with it: %v, want %q", text, err, why)
		}
	}
	if err := os.Remove(plans.path); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	plans.reload()
	if said := log.String(); !strings.Contains(said, "still on the old plans") {
		t.Errorf("of a file that is gone: said %q", said)
	}
}

// The file is replaced a thousand times, some of them by a bad one, while clients ask.
// What each of them is told is from one table and no other.
func TestReloadUnderLoad(t *testing.T) {
	tables := []string{
		"free: 10/min\npro: 100/min and 1000/h\n",
		"free: 7/h burst 3\npro: 50/s\n",
		"free: 10/h\npro: blocked\ngold: unlimited\n",
	}
	var texts []string
	for text := range bad {
		texts = append(texts, text)
	}
	// X-RateLimit-Limit and RateLimit-Policy, and those of a refusal that has none.
	coherent := map[string]bool{
		`10 "free";q=10;w=60`:                              true,
		`3 "free";q=3;w=1543`:                              true,
		`10 "free";q=10;w=3600`:                            true,
		`100 "pro/min";q=100;w=60, "pro/h";q=1000;w=3600`:  true,
		`1000 "pro/min";q=100;w=60, "pro/h";q=1000;w=3600`: true,
		`50 "pro";q=50;w=1`:                                true,
		`403 `:                                             true, // blocked
	}
	plans, _ := newFile(t, tables[0])
	handler := ratetierhttp.Middleware(plans.limiter, ratetierhttp.Config{
		Identify: identify,
		Headers:  httplimit.XRateLimit | httplimit.IETF,
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if admission, ok := ratetier.FromContext(r.Context()); !ok || admission.Settle(r.Context(), 0) != nil {
			t.Error("settling failed")
		}
	}))
	goroutines := runtime.NumGoroutine()

	var done atomic.Bool
	var clients sync.WaitGroup
	asked := make(chan string, 1)
	for _, key := range []string{"key_ana", "key_bea"} {
		clients.Go(func() {
			for !done.Load() {
				r := httptest.NewRequest(http.MethodGet, "/data", http.NoBody)
				r.Header.Set("X-Api-Key", key)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				told := w.Header().Get("X-RateLimit-Limit") + " " + w.Header().Get("RateLimit-Policy")
				if told == " " {
					told = strconv.Itoa(w.Code) + told
				}
				if !coherent[told] {
					t.Errorf("%s was told %q, which is no table's", key, told)
				}
				select {
				case asked <- key:
				default:
				}
			}
		})
	}
	for i := range 1000 {
		write(t, plans.path, tables[i%len(tables)])
		plans.reload()
		if i%10 == 0 {
			write(t, plans.path, texts[i/10%len(texts)])
			plans.reload()
		}
		<-asked
	}
	if got := runtime.NumGoroutine(); got > goroutines+2 {
		t.Errorf("%d goroutines, where there were %d and two clients", got, goroutines)
	}
	done.Store(true)
	clients.Wait()
	want, _ := parse([]byte(tables[999%len(tables)]))
	d := plans.limiter.Peek(t.Context(), ratetier.Identity{User: "new", Tier: "free"})
	if d.Quota().String() != want["free"].String() {
		t.Errorf("in the end free is %v, want %v", d.Quota(), want["free"])
	}
}

// newFile returns a file of plans, and what is said about it.
func newFile(t *testing.T, text string) (*file, *bytes.Buffer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiers.yaml")
	write(t, path, text)
	log := new(bytes.Buffer)
	plans, err := open(path, log)
	if err != nil {
		t.Fatal(err)
	}
	return plans, log
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
