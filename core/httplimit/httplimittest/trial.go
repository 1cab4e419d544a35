package httplimittest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	"github.com/ratetier/ratetier/core/storetest"
)

// start is where the clock stands, in Unix seconds.
const start = 1_000_000

// patience is for adapters that hang. No promise is about it.
const patience = 10 * time.Second

// What clients send.
const (
	ana = "X-User: ana"
	bea = "X-User: bea"
)

// peerHeader has the service believe that the connection came from elsewhere.
const peerHeader = "X-Test-Peer"

// trial is one promise being tested.
type trial struct {
	pattern func(string) string
	handler func(App[layer]) http.Handler
	context context.Context
	clock   *clocktest.Clock
	reached atomic.Int64 // how often the handler of a route was
	closers []func()

	mu   sync.Mutex // handlers report too
	errs []error
}

func newTrial(pattern func(string) string, handler func(App[layer]) http.Handler) *trial {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	return &trial{
		pattern: pattern,
		handler: handler,
		context: ctx,
		clock:   clocktest.New(time.Unix(start, 0)),
		closers: []func(){cancel},
	}
}

// run runs the test, and stops its services. An adapter that panics breaks its
// promise, not the process.
func (t *trial) run(test func(*trial)) {
	defer func() {
		for _, c := range t.closers {
			c()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			t.errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	test(t)
}

func (t *trial) errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, fmt.Errorf(format, args...))
}

// err returns everything that was reported, nil if nothing was.
func (t *trial) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.errs...)
}

// layer is one middleware: a limiter, or else the cost of a route.
type layer struct {
	limiter *ratetier.Limiter
	config  httplimit.Config[*http.Request]
	cost    int64
}

type config = httplimit.Config[*http.Request]

// limiter returns a limiter on the trial's clock, with a store and tiers.
func (t *trial) limiter(config ratetier.Config) *ratetier.Limiter {
	config.Clock = t.clock
	if config.Store == nil {
		config.Store = storetest.Reference()
	}
	if config.Tiers == nil {
		config.Tiers = ratetier.Tiers{
			"free":       ratetier.PerMinute(10),
			"pro":        ratetier.PerMinute(100),
			"enterprise": ratetier.Unlimited(),
			"closed":     ratetier.Blocked(),
		}
	}
	return ratetier.Must(ratetier.New(config))
}

// limit is the layer of a limiter. By default, users identify by header.
func limit(limiter *ratetier.Limiter, config config) layer {
	if config.Identify == nil {
		config.Identify = byHeader
	}
	return layer{limiter: limiter, config: config}
}

// cost is the layer of a route that declares its cost.
func cost(n int64) layer { return layer{cost: n} }

// byHeader takes X-User and X-Tier at their word. The tier is free if not said.
func byHeader(r *http.Request) (ratetier.Identity, error) {
	identity := ratetier.Identity{User: r.Header.Get("X-User"), Tier: r.Header.Get("X-Tier")}
	if identity.User == "" {
		return ratetier.Identity{}, ratetier.ErrNoIdentity
	}
	if identity.Tier == "" {
		identity.Tier = "free"
	}
	return identity, nil
}

// route is "METHOD pattern" with layers around its handler, which is t.ok.
func (t *trial) route(name string, use ...layer) Route[layer] {
	return t.routeTo(http.HandlerFunc(t.ok), name, use...)
}

func (t *trial) routeTo(handler http.Handler, name string, use ...layer) Route[layer] {
	method, pattern, _ := strings.Cut(name, " ")
	return Route[layer]{Method: method, Pattern: pattern, Use: use, Handler: handler}
}

// ok is the handler of most routes.
func (t *trial) ok(w http.ResponseWriter, _ *http.Request) {
	t.reached.Add(1)
	fmt.Fprint(w, "ok")
}

// service is a service that listens.
type service struct {
	trial  *trial
	server *httptest.Server
	client *http.Client
	sent   atomic.Int64
}

// serve starts a service of one group of routes. Without any, it has "GET /".
func (t *trial) serve(use []layer, routes ...Route[layer]) *service {
	if len(routes) == 0 {
		routes = []Route[layer]{t.route("GET /")}
	}
	return t.serveApp(App[layer]{Use: use, Groups: []Group[layer]{{Routes: routes}}})
}

func (t *trial) serveApp(app App[layer]) *service {
	handler := t.handler(app)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peers := r.Header[peerHeader]; peers != nil {
			r.RemoteAddr = peers[0]
		}
		w.Header().Set("Access-Control-Allow-Origin", "https://app.example") // as a CORS middleware does
		handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.closers = append(t.closers, func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &service{trial: t, server: server, client: client}
}

// get sends a GET request with headers such as "X-User: ana".
func (s *service) get(path string, headers ...string) *answer {
	return s.send(http.MethodGet, path, http.NoBody, headers...)
}

// send sends a request and reads the answer.
func (s *service) send(method, path string, body io.Reader, headers ...string) *answer {
	a := &answer{trial: s.trial, name: fmt.Sprintf("request %d, %s %s", s.sent.Add(1), method, path)}
	response, err := s.open(method, path, body, headers...)
	if err != nil {
		a.err = err
		return a
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	a.status, a.header, a.body, a.err = response.StatusCode, response.Header, string(text), err
	return a
}

// open sends a request. The caller closes the body of the answer.
func (s *service) open(method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(s.trial.context, method, s.server.URL+path, body)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Add(name, strings.TrimSpace(value))
	}
	return s.client.Do(r)
}

// answer is what a client got.
type answer struct {
	trial  *trial
	name   string
	status int
	header http.Header
	body   string
	err    error
}

func (a *answer) errorf(format string, args ...any) {
	a.trial.errorf("%s: %s", a.name, fmt.Sprintf(format, args...))
}

// is checks the status and headers: "Name: value" is one that is there once with
// that value, and "Name:" one that is not there.
func (a *answer) is(status int, headers ...string) *answer {
	if a.err != nil {
		a.errorf("no answer: %v", a.err)
		return a
	}
	if a.status != status {
		a.errorf("status %d, want %d", a.status, status)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		switch got := a.header.Values(name); {
		case value == "" && len(got) > 0:
			a.errorf("%s is %q, want none", name, got)
		case value != "" && (len(got) != 1 || got[0] != value):
			a.errorf("%s is %q, want %q once", name, got, value)
		}
	}
	return a
}

// unmeasured lists the headers that an answer must not have if nothing was measured.
var unmeasured = []string{"X-RateLimit-Limit:", "X-RateLimit-Remaining:", "X-RateLimit-Reset:", "RateLimit:", "RateLimit-Policy:", "Retry-After:"}

// left checks that the answer is 200 with that many cells left.
func (a *answer) left(remaining int) *answer {
	return a.is(http.StatusOK, fmt.Sprintf("X-RateLimit-Remaining: %d", remaining))
}

// json checks that the body is that JSON value, apart from a member "detail", which
// is prose.
func (a *answer) json(contentType, want string) {
	if a.err != nil {
		return // told by is
	}
	if got := a.header.Get("Content-Type"); got != contentType {
		a.errorf("Content-Type is %q, want %q", got, contentType)
	}
	var got, wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		a.errorf("want %s: %v", want, err)
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		a.errorf("the body %q is not one JSON object: %v", a.body, err)
		return
	}
	delete(got, "detail")
	if !reflect.DeepEqual(got, wanted) {
		a.errorf("the body is %s, want %s", a.body, want)
	}
}

// left checks how much of a user's bucket is left.
func (t *trial) left(limiter *ratetier.Limiter, user string, want int64) {
	d := limiter.Peek(t.context, ratetier.Identity{User: user, Tier: "free"})
	if d.Remaining != want {
		t.errorf("%s has %d left, want %d", user, d.Remaining, want)
	}
}
