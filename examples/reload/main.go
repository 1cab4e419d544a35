// An API whose plans are in a file. It is read again on SIGHUP, and when it changes;
// a file that is wrong changes nothing.
//
//	go run ./examples/reload
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/goccy/go-yaml"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// pause is how long a change is left alone: most are made in several steps.
const pause = 100 * time.Millisecond

// parse reads a table of plans from YAML, and so from JSON.
func parse(text []byte) (ratetier.Tiers, error) {
	var tiers, more ratetier.Tiers
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&tiers); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document: write one table")
	}
	return tiers, nil
}

// file is where the plans of a limiter are.
type file struct {
	path    string
	limiter *ratetier.Limiter
	log     io.Writer
	tried   []byte // what was there when it was last read
}

// reload replaces the plans by those in the file, all of them or none.
func (f *file) reload() {
	text, err := os.ReadFile(f.path)
	f.tried = text
	var tiers ratetier.Tiers
	if err == nil {
		tiers, err = parse(text)
	}
	if err == nil {
		err = f.limiter.SetTiers(tiers)
	}
	if err != nil {
		fmt.Fprintf(f.log, "%s: still on the old plans: %v\n", f.path, err)
		return
	}
	fmt.Fprintf(f.log, "%s: now %v\n", f.path, tiers)
}

// changed tells whether something else is in the file than was last tried.
func (f *file) changed() bool {
	text, _ := os.ReadFile(f.path) // one that is gone is reloaded too, which says so
	return !bytes.Equal(text, f.tried)
}

// follow reloads when told to, and when the file has changed, until the context is done.
func (f *file) follow(ctx context.Context, told <-chan os.Signal, changes *fsnotify.Watcher) {
	var paused <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
			f.reload()
		case <-changes.Events:
			if paused == nil { // or a busy directory would put it off for ever
				paused = time.After(pause)
			}
		case err := <-changes.Errors:
			fmt.Fprintf(f.log, "%s: not watched, send SIGHUP: %v\n", f.path, err)
		case <-paused:
			paused = nil
			if f.changed() {
				f.reload()
			}
		}
	}
}

// watch returns what sees the file change. It watches the directory, since editors put
// another file in its place, and Kubernetes another directory behind a link.
func watch(path string) (*fsnotify.Watcher, error) {
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := changes.Add(filepath.Dir(path)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: watch its directory: %w", path, err), changes.Close())
	}
	return changes, nil
}

// open returns the file and the limiter that has its plans.
func open(path string, log io.Writer) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tiers, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	limiter, err := ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       tiers,
		DefaultTier: "free",
		OnMissing:   ratetier.Deny(http.StatusUnauthorized),
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &file{path: path, limiter: limiter, log: log, tried: text}, nil
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

func newHandler(limiter *ratetier.Limiter) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /data", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "data") })
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: identify}, mux)
}

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "where to listen")
	path := flag.String("tiers", "examples/reload/tiers.yaml", "the file with the plans, YAML or JSON")
	flag.Parse()
	if err := run(*addr, *path, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr, path string, out io.Writer) error {
	changes, err := watch(path) // before the file is read, so that no change is missed
	if err != nil {
		return err
	}
	defer func() { _ = changes.Close() }()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	defer signal.Stop(told)
	plans, err := open(path, out)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `listening on http://%[1]s

curl -i -H 'X-Api-Key: key_ana' %[1]s/data   # free: 10 a minute
# Then change %[2]s, and ask again. To have it read in any case:
kill -HUP %[3]d

`, listener.Addr(), path, os.Getpid())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server := &http.Server{Handler: newHandler(plans.limiter), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		plans.follow(ctx, told, changes)
		_ = server.Shutdown(context.WithoutCancel(ctx))
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
