// Messages over a WebSocket, each charged to the plan of whoever sends it. A client that is
// too fast is told so, and one that does not listen is disconnected.
//
//	go run ./examples/websocket
//	go run ./examples/websocket -send hello -times 11 -key key_ana
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// patience is how many messages in a row may be refused before the connection is closed.
const patience = 3

// writeTimeout is how long a client may take to read what it is sent.
const writeTimeout = 5 * time.Second

// chat echoes messages in capitals. Its connections end when stopping is done.
func chat(stopping context.Context, connections *sync.WaitGroup) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		admission, ok := ratetier.FromContext(r.Context())
		if !ok {
			http.Error(w, "no limiter in front of this route", http.StatusInternalServerError)
			return
		}
		connections.Add(1)
		defer connections.Done()
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // and the client has been told
		}
		defer func() { _ = conn.CloseNow() }()
		stop := context.AfterFunc(stopping, func() { _ = conn.Close(websocket.StatusGoingAway, "the service is stopping") })
		defer stop()
		_ = serve(r.Context(), conn, admission) // the client has gone, or been sent away
	}
}

func serve(ctx context.Context, conn *websocket.Conn, admission *ratetier.Admission) error {
	refused := 0
	for {
		kind, message, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		decision := admission.Take(ctx, cost(message))
		if decision.Allowed {
			refused = 0
			err = write(ctx, conn, kind, strings.ToUpper(string(message)))
		} else {
			refused++
			if code, reason := closing(&decision, refused); code != 0 {
				return conn.Close(code, reason)
			}
			err = write(ctx, conn, websocket.MessageText, slowDown(&decision))
		}
		if err != nil {
			return err
		}
	}
}

// cost is 1 for each KiB begun.
func cost(message []byte) int64 { return 1 + int64(len(message))/1024 }

// slowDown is what a client is told of a message that was not handled.
func slowDown(d *ratetier.Decision) string {
	seconds := (d.RetryAfter + time.Second - 1) / time.Second
	return fmt.Sprintf(`{"error":"rate limit exceeded","retry_after":%d}`, seconds)
}

// closing returns the code with which to close the connection, 0 to keep it.
func closing(d *ratetier.Decision, refused int) (code websocket.StatusCode, reason string) {
	switch d.Outcome {
	case ratetier.OutcomeLimited:
		if refused <= patience {
			return 0, ""
		}
		// Not 1013, try again later: the fault is the client's, and many libraries would
		// connect again by themselves.
		return websocket.StatusPolicyViolation, "rate limit exceeded"
	case ratetier.OutcomeCostTooHigh:
		return websocket.StatusMessageTooBig, "larger than the plan ever allows"
	case ratetier.OutcomeStoreFailed, ratetier.OutcomeCanceled:
		return websocket.StatusTryAgainLater, "service unavailable"
	default: // the plan is blocked, or gone
		return websocket.StatusPolicyViolation, "not allowed"
	}
}

func write(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, text string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return conn.Write(ctx, kind, []byte(text))
}

func newLimiter(store ratetier.Store) (*ratetier.Limiter, error) {
	return ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		OnMissing:     ratetier.Deny(http.StatusUnauthorized),
		OnStoreFailed: ratetier.Deny(http.StatusServiceUnavailable),
	})
}

func newHandler(stopping context.Context, connections *sync.WaitGroup, limiter *ratetier.Limiter) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /chat", chat(stopping, connections))
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: identify}, mux)
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

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "where to listen, or whom to send to")
	message := flag.String("send", "", "be a client, and send this message")
	times := flag.Int("times", 1, "how often to send it")
	key := flag.String("key", "", "the client's API key")
	flag.Parse()
	var err error
	if *message == "" {
		err = run(*addr, os.Stdout)
	} else {
		err = send(context.Background(), *addr, *key, *message, *times, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr string, out io.Writer) error {
	limiter, err := newLimiter(memorystore.New())
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `listening on http://%[1]s

go run ./examples/websocket -addr %[1]s -key key_ana -send hello             # free: 10 a minute, and connecting is one
go run ./examples/websocket -addr %[1]s -key key_ana -send hello -times 20   # is told to slow down, and does not
go run ./examples/websocket -addr %[1]s -send hello                          # no key
`, listener.Addr())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var connections sync.WaitGroup
	server := &http.Server{Handler: newHandler(ctx, &connections, limiter), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = server.Shutdown(context.WithoutCancel(ctx))
	}
	stop()
	connections.Wait() // of which the server knows nothing
	return err
}

// send is the client: it prints what it is told, and how the connection ends.
func send(ctx context.Context, addr, key, message string, times int, out io.Writer) error {
	options := &websocket.DialOptions{HTTPHeader: http.Header{"X-Api-Key": {key}}}
	conn, response, err := websocket.Dial(ctx, "ws://"+addr+"/chat", options) //nolint:bodyclose // Dial has closed it
	if err != nil {
		if response != nil {
			fmt.Fprintln(out, "not connected:", response.Status)
		}
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	for range times {
		err := conn.Write(ctx, websocket.MessageText, []byte(message))
		var answer []byte
		if err == nil {
			_, answer, err = conn.Read(ctx)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", answer)
	}
	return conn.Close(websocket.StatusNormalClosure, "")
}
