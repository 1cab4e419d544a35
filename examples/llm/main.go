// A language model behind a limit of tokens. What a request may cost at most is reserved
// before the work, and what it did cost is settled after it.
//
//	go run ./examples/llm
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// maxTokens is what an answer has at most. A client that means to use less says so, and
// has less reserved.
const maxTokens = 400

// prompt is what a client sends.
type prompt struct {
	Text      string `json:"prompt"`
	MaxTokens int64  `json:"max_tokens"`
}

// readPrompt returns the prompt in the body, and leaves the body to be read again.
func readPrompt(r *http.Request) (prompt, error) {
	body, err := httplimit.PeekBody(r, 16<<10)
	if err != nil {
		return prompt{}, err
	}
	p := prompt{MaxTokens: maxTokens}
	if err := json.Unmarshal(body, &p); err != nil {
		return prompt{}, err
	}
	if p.MaxTokens < 1 || p.MaxTokens > maxTokens {
		return prompt{}, fmt.Errorf("max_tokens %d: must be 1 to %d", p.MaxTokens, maxTokens)
	}
	return p, nil
}

// tokens estimates how many a text has. It is no less than what is charged in the end.
func tokens(text string) int64 { return int64(len(text)) }

// reserve is what a request may cost at most. One that the handler will not do costs 1.
func reserve(r *http.Request, route string) int64 {
	if route != "POST /chat" {
		return 0
	}
	p, err := readPrompt(r)
	if err != nil {
		return 1
	}
	return tokens(p.Text) + p.MaxTokens
}

// model answers a prompt, and tells how many tokens that took.
type model func(ctx context.Context, p prompt) (answer string, used int64, err error)

func chat(complete model) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := readPrompt(r)
		if err != nil {
			status := http.StatusBadRequest
			if tooLarge := (*httplimit.BodyTooLargeError)(nil); errors.As(err, &tooLarge) {
				status = http.StatusRequestEntityTooLarge
			}
			http.Error(w, err.Error(), status)
			return
		}
		var used int64
		defer func() { settle(r.Context(), used) }() // whatever happens, a panic too
		answer, used, err := complete(r.Context(), p)
		if err != nil {
			http.Error(w, "the model failed, and you were charged nothing", http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, "%s\n(%d tokens)\n", answer, used)
	}
}

// settle makes the request cost what was used of its reservation.
func settle(ctx context.Context, used int64) {
	if admission, ok := ratetier.FromContext(ctx); ok {
		_ = admission.Settle(ctx, used) // a failed store has told the Observer
	}
}

func newHandler(complete model) (http.Handler, error) {
	limiter, err := ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(1000),
			"pro":  ratetier.PerMinute(20_000),
		},
		OnMissing: ratetier.Deny(http.StatusUnauthorized),
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /chat", chat(complete))
	mux.HandleFunc("GET /usage", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "see the headers") })
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: identify, Cost: reserve}, mux), nil
}

func identify(r *http.Request) (ratetier.Identity, error) {
	plans := map[string]string{"key_ana": "free", "key_bea": "pro"} // in a real service a database
	key := r.Header.Get("X-Api-Key")
	plan, ok := plans[key]
	if !ok {
		return ratetier.Identity{}, ratetier.ErrNoIdentity
	}
	return ratetier.Identity{User: key, Tier: plan}, nil
}

// shout is a model that thinks for a second.
func shout(ctx context.Context, p prompt) (string, int64, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return "", 0, ctx.Err()
	}
	if strings.Contains(p.Text, "fail") {
		return "", 0, errors.New("out of words")
	}
	answer := strings.ToUpper(p.Text)
	answer = answer[:min(int64(len(answer)), p.MaxTokens)]
	return answer, tokens(p.Text) + tokens(answer), nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "where to listen")
	flag.Parse()
	if err := run(*addr, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr string, out io.Writer) error {
	handler, err := newHandler(shout)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `listening on http://%[1]s

# free: 1000 tokens a minute, of which a prompt reserves up to 400, and its own
curl -i -H 'X-Api-Key: key_ana' -d '{"prompt": "hello"}' %[1]s/chat
curl -i -H 'X-Api-Key: key_ana' -d '{"prompt": "fail"}' %[1]s/chat   # is given back
curl -i -H 'X-Api-Key: key_ana' %[1]s/usage                         # costs nothing
# side by side: two are admitted, eight refused
seq 10 | xargs -P 10 -I{} curl -s -H 'X-Api-Key: key_ana' -d '{"prompt": "number {}"}' %[1]s/chat
`, listener.Addr())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.WithoutCancel(ctx))
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
