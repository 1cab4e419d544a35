package ratetierchi_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	ratetierchi "github.com/ratetier/ratetier/adapters/chi"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// full is what the tier of these tests allows at once.
const full = 100

func newLimiter(burst int64) *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(burst)},
		DefaultTier: "free",
		Clock:       clocktest.New(time.Unix(1_000_000, 0)),
	}))
}

// identify takes the name in X-User at its word.
func identify(r *http.Request) (ratetier.Identity, error) {
	return ratetier.Identity{User: r.Header.Get("X-User"), Tier: "free"}, nil
}

var ana = ratetier.Identity{User: "ana", Tier: "free"}

// send has ana send a request.
func send(t *testing.T, handler http.Handler, method, path string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	r.Header.Set("X-User", ana.User)
	return serve(handler, r)
}

func serve(handler http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

// used returns how much of ana's bucket is used.
func used(t *testing.T, limiter *ratetier.Limiter) int64 {
	t.Helper()
	d := limiter.Peek(t.Context(), ana)
	return d.Limit - d.Remaining
}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

// Wherever the limiter stands, it knows the pattern that chi itself knows only in
// the handler.
func TestRouteIsKnownAheadOfChi(t *testing.T) {
	type step struct{ method, path, route string }
	steps := []step{
		{"GET", "/", "/"},
		{"GET", "/users/7", "/users/{id}"},
		{"POST", "/users/7", ""}, // 405
		{"GET", "/nothing", ""},  // 404
		{"GET", "/number/12", "/number/{n:[0-9]+}"},
		{"GET", "/number/x", ""},
		{"GET", "/files/a/b", "/files/*"},
		{"GET", "/api", "/api"},
		{"GET", "/api/", "/api"},
		{"GET", "/api/things/3", "/api/things/{id}"},
		{"GET", "/api/nothing", ""},
		{"GET", "/api/deep/4", "/api/deep/{id}"},
		{"GET", "/api/deep/4/", "/api/deep/{id}"},
		{"GET", "/api/deep/4/leaf", "/api/deep/{id}/leaf"},
		{"GET", "/mounted/x%2Fy/z", "/mounted/{name}/z"}, // an escaped slash
		{"GET", "/mounted/a/any/thing", "/mounted/{name}/any/*"},
		{"DELETE", "/with", "/with"},
		{"GET", "/group/1", "/group/{id}"},
	}
	stripped := []step{
		{"GET", "/users/7/", "/users/{id}"},
		{"GET", "/api/things/3/", "/api/things/{id}"},
		{"GET", "/mounted/a/z/", "/mounted/{name}/z"},
	}
	kept := []step{
		{"GET", "/users/7/", ""},
		{"GET", "/api/things/3/", ""},
		{"GET", "/mounted/a/z/", ""},
	}
	// routes builds the service, with what stands at its root, in its subrouters, and
	// in With and Group.
	routes := func(handler http.HandlerFunc, root, sub, inline []mw) http.Handler {
		r := chi.NewRouter()
		r.Use(root...)
		r.With(inline...).Get("/", handler)
		r.With(inline...).Get("/users/{id}", handler)
		r.With(inline...).Get("/number/{n:[0-9]+}", handler)
		r.With(inline...).Get("/files/*", handler)
		r.Route("/api", func(r chi.Router) {
			r.Use(sub...)
			r.With(inline...).Get("/", handler)
			r.With(inline...).Get("/things/{id}", handler)
			r.Route("/deep/{id}", func(r chi.Router) {
				r.With(inline...).Get("/", handler)
				r.With(inline...).Get("/leaf", handler)
			})
		})
		mounted := chi.NewRouter()
		mounted.Use(sub...)
		mounted.With(inline...).Get("/{name}/z", handler)
		mounted.With(inline...).Get("/{name}/any/*", handler)
		r.Mount("/mounted", mounted)
		r.With(inline...).Delete("/with", handler)
		r.Group(func(r chi.Router) {
			r.Use(inline...)
			r.Get("/group/{id}", handler)
		})
		return r
	}
	places := map[string]func(http.HandlerFunc, mw) http.Handler{
		"root": func(handler http.HandlerFunc, limit mw) http.Handler {
			return routes(handler, []mw{limit}, nil, nil)
		},
		"subrouter": func(handler http.HandlerFunc, limit mw) http.Handler {
			return routes(handler, nil, []mw{limit}, nil)
		},
		"inline": func(handler http.HandlerFunc, limit mw) http.Handler {
			return routes(handler, nil, nil, []mw{limit})
		},
		"root, behind StripSlashes": func(handler http.HandlerFunc, limit mw) http.Handler {
			return routes(handler, []mw{middleware.StripSlashes, limit}, nil, nil)
		},
		"subrouter, behind StripSlashes": func(handler http.HandlerFunc, limit mw) http.Handler {
			return routes(handler, []mw{middleware.StripSlashes}, []mw{limit}, nil)
		},
		"inline, behind StripSlashes": func(handler http.HandlerFunc, limit mw) http.Handler {
			return routes(handler, []mw{middleware.StripSlashes}, nil, []mw{limit})
		},
		"below a ServeMux": func(handler http.HandlerFunc, limit mw) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/", routes(handler, []mw{limit}, nil, nil))
			return mux
		},
	}
	for place, build := range places {
		t.Run(place, func(t *testing.T) {
			const notAsked = "the limiter did not run"
			ahead, chis := "", ""
			limit := ratetierchi.Middleware(newLimiter(1_000_000), ratetierchi.Config{
				Identify: identify,
				Cost: func(_ *http.Request, route string) int64 {
					ahead = route
					return 1
				},
			})
			service := build(func(_ http.ResponseWriter, r *http.Request) {
				chis = chi.RouteContext(r.Context()).RoutePattern()
			}, limit)
			slashes := kept
			if strings.Contains(place, "StripSlashes") {
				slashes = stripped
			}
			for _, step := range slices.Concat(steps, slashes) {
				ahead, chis = notAsked, ""
				send(t, service, step.method, step.path)
				if chis != step.route {
					t.Errorf("%s %s: chi says %q, want %q", step.method, step.path, chis, step.route)
				}
				if ahead != notAsked && ahead != step.route {
					t.Errorf("%s %s: known ahead %q, want %q", step.method, step.path, ahead, step.route)
				}
			}
		})
	}
}

func TestRouteFollowsAnOverriddenMethod(t *testing.T) {
	limiter := newLimiter(full)
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			chi.RouteContext(r.Context()).RouteMethod = r.Header.Get("X-Http-Method-Override")
			next.ServeHTTP(w, r)
		})
	})
	r.Use(ratetierchi.Middleware(limiter, ratetierchi.Config{
		Identify:   identify,
		RouteCosts: ratetierchi.RouteCosts{"/things/{id}": 5},
	}))
	r.Delete("/things/{id}", ok)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/things/7", http.NoBody)
	request.Header.Set("X-User", ana.User)
	request.Header.Set("X-Http-Method-Override", http.MethodDelete)
	if response := serve(r, request); response.StatusCode != 200 || used(t, limiter) != 5 {
		t.Errorf("status %d, used %d, want 200, 5", response.StatusCode, used(t, limiter))
	}
}

func TestRouteBehindTheRoutingIsTheOneTaken(t *testing.T) {
	limiter := newLimiter(full)
	r := chi.NewRouter()
	r.Route("/api", func(r chi.Router) {
		r.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				chi.RouteContext(r.Context()).RoutePath = "/current" // wherever the path leads
				next.ServeHTTP(w, r)
			})
		})
		r.With(ratetierchi.Middleware(limiter, ratetierchi.Config{
			Identify:   identify,
			RouteCosts: ratetierchi.RouteCosts{"/api/current": 5},
		})).Get("/current", ok)
	})
	if response := send(t, r, "GET", "/api/v1"); response.StatusCode != 200 || used(t, limiter) != 5 {
		t.Errorf("status %d, used %d, want 200, 5", response.StatusCode, used(t, limiter))
	}
}

func TestHeadCostsWhatGetCosts(t *testing.T) {
	for name, chain := range map[string]func(limit mw) []mw{
		"limiter before GetHead": func(limit mw) []mw { return []mw{limit, middleware.GetHead} },
		"limiter behind GetHead": func(limit mw) []mw { return []mw{middleware.GetHead, limit} },
	} {
		t.Run(name, func(t *testing.T) {
			limiter := newLimiter(full)
			r := chi.NewRouter()
			r.Use(chain(ratetierchi.Middleware(limiter, ratetierchi.Config{
				Identify:   identify,
				RouteCosts: ratetierchi.RouteCosts{"GET /reports/{id}": 5, "HEAD /own": 2, "GET /own": 9},
			}))...)
			r.Get("/reports/{id}", ok)
			r.Get("/own", ok)
			r.Head("/own", ok)
			for _, step := range []struct {
				path string
				used int64
			}{{"/reports/7", 5}, {"/own", 7}} {
				if response := send(t, r, "HEAD", step.path); response.StatusCode != 200 || used(t, limiter) != step.used {
					t.Errorf("%s: status %d, used %d, want 200, %d", step.path, response.StatusCode, used(t, limiter), step.used)
				}
			}
		})
	}
}

// Users test handlers with a context of chi that no router has made.
func TestContextOfATestNeedsNoRouter(t *testing.T) {
	limiter := newLimiter(full)
	handler := ratetierchi.Middleware(limiter, ratetierchi.Config{
		Identify:   identify,
		RouteCosts: ratetierchi.RouteCosts{"/": 5},
	})(http.HandlerFunc(ok))
	ctx := context.WithValue(t.Context(), chi.RouteCtxKey, chi.NewRouteContext())
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	request.Header.Set("X-User", ana.User)
	if response := serve(handler, request); response.StatusCode != 200 || used(t, limiter) != 1 {
		t.Errorf("status %d, used %d, want 200, 1", response.StatusCode, used(t, limiter))
	}
}

func TestRouteCostsThatCannotApplyAreLogged(t *testing.T) {
	var log strings.Builder
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	r := chi.NewRouter()
	r.Get("/", ok)
	limited := ratetierchi.Middleware(newLimiter(full), ratetierchi.Config{
		Identify:   identify,
		RouteCosts: ratetierchi.RouteCosts{"/": 5},
	})(r)
	for range 2 {
		send(t, limited, "GET", "/")
	}
	if text := log.String(); strings.Count(text, "RouteCosts do not apply") != 1 {
		t.Errorf("log %q, want one line about it", text)
	}
}

func TestClientIPTellsUnidentifiedCallersApart(t *testing.T) {
	direct, trusting := middleware.ClientIPFromRemoteAddr, middleware.ClientIPFromXFF("10.0.0.0/8")
	tests := []struct {
		name     string
		clientIP mw
		peers    [2]string // remote addresses of two requests
		xff      [2]string // their X-Forwarded-For
		buckets  int
	}{
		{"direct: a header changes nothing", direct, [2]string{"192.0.2.1:1", "192.0.2.1:2"}, [2]string{"1.1.1.1", "2.2.2.2"}, 1},
		{"direct: two peers", direct, [2]string{"192.0.2.1:1", "192.0.2.2:1"}, [2]string{}, 2},
		{"direct: no address, as on a Unix socket", direct, [2]string{"@", "@"}, [2]string{}, 1},
		{"proxy: two clients", trusting, [2]string{"10.0.0.1:1", "10.0.0.1:2"}, [2]string{"1.1.1.1", "2.2.2.2"}, 2},
		{"proxy: a client cannot make itself up", trusting, [2]string{"10.0.0.1:1", "10.0.0.1:2"}, [2]string{"1.1.1.1, 192.0.2.7", "2.2.2.2, 192.0.2.7"}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := chi.NewRouter()
			r.Use(test.clientIP)
			r.Use(ratetierchi.Middleware(newLimiter(full), ratetierchi.Config{
				Identify:   identify,
				ClientAddr: func(r *http.Request) string { return middleware.GetClientIP(r.Context()) },
			}))
			r.Get("/", ok)
			var last *http.Response
			for i := range 2 {
				request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
				request.RemoteAddr = test.peers[i]
				request.Header.Set("X-Forwarded-For", test.xff[i])
				last = serve(r, request)
			}
			want := strconv.Itoa(full - 2/test.buckets)
			if got := last.Header.Get("X-RateLimit-Remaining"); got != want {
				t.Errorf("remaining %q, want %q: %d buckets", got, want, test.buckets)
			}
		})
	}
}

func TestMisconfigurationPanicsWhenBuilt(t *testing.T) {
	slash := ratetierchi.RouteCosts{"GET /reports/": 5}
	tests := map[string]struct {
		build func()
		says  string
	}{
		"nil limiter":   {func() { ratetierchi.Middleware(nil, ratetierchi.Config{Identify: identify}) }, "limiter is nil"},
		"no Identify":   {func() { ratetierchi.Middleware(newLimiter(1), ratetierchi.Config{}) }, "Identify"},
		"negative Cost": {func() { ratetierchi.Cost(-1) }, "-1"},
		"final slash": {func() {
			ratetierchi.Middleware(newLimiter(1), ratetierchi.Config{Identify: identify, RouteCosts: slash})
		}, `write "GET /reports"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, test.says) {
					t.Errorf("panic %q, want one that says %q", got, test.says)
				}
			}()
			test.build()
		})
	}
}
