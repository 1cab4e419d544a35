package redisstore_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// fault is what a proxy does to connections that a script is called on: a client that
// tries again finds new ones that work, up to there.
type fault int

const (
	none            fault = iota
	loseReplies           // the server executes, and its answers are dropped
	cutAfterRequest       // the same, and the connection is closed
	silent                // not even a new connection is answered
)

// proxy stands between a client and a server.
type proxy struct {
	addr string

	mu    sync.Mutex
	fault fault
	seen  bytes.Buffer // what clients sent, in lower case
	lost  int          // how many answers were dropped
}

func startProxy(t testing.TB, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: listener.Addr().String()}
	done := make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := new(net.Dialer).DialContext(t.Context(), "tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			var called atomic.Bool
			serving.Go(func() {
				p.pipe(client, upstream, func(data []byte) (pass, cut bool) { return p.toServer(data, &called) })
			})
			serving.Go(func() {
				p.pipe(upstream, client, func([]byte) (pass, cut bool) { return p.toClient(called.Load()) })
			})
			serving.Go(func() { <-done; client.Close(); upstream.Close() })
		}
	})
	t.Cleanup(func() { close(done); listener.Close(); serving.Wait() })
	return p
}

func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// commands returns how often clients sent a command.
func (p *proxy) commands(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Count(p.seen.Bytes(), []byte("\r\n"+name+"\r\n"))
}

// dropped returns how many answers were dropped.
func (p *proxy) dropped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// pipe copies from one side to the other what the filter lets through.
func (p *proxy) pipe(from, to net.Conn, filter func([]byte) (pass, cut bool)) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		pass, cut := filter(buffer[:n])
		if cut {
			return
		}
		if pass {
			if _, err := io.Copy(to, bytes.NewReader(buffer[:n])); err != nil {
				return
			}
		}
	}
}

func (p *proxy) toServer(data []byte, called *atomic.Bool) (pass, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data = bytes.ToLower(data)
	p.seen.Write(data)
	if bytes.Contains(data, []byte("\r\neval")) {
		called.Store(true)
	}
	return true, false
}

func (p *proxy) toClient(called bool) (pass, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.fault == silent:
		return false, false
	case called:
		if p.fault != none {
			p.lost++
		}
		return p.fault == none, p.fault == cutAfterRequest
	default:
		return true, false
	}
}
