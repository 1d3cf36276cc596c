// Package relay is a TCP relay on loopback between a test and a server, which the test cuts:
// connections are refused, or - as with packets that are dropped - nothing comes any more.
package relay

import (
	"net"
	"sync"
	"testing"
)

// State is what a relay does.
type State int

// States.
const (
	// Pass lets everything through.
	Pass State = iota
	// Refuse resets connections, those that are open too.
	Refuse
	// Swallow accepts connections and lets nothing through, in either direction, until it
	// passes again; what was sent meanwhile comes then.
	Swallow
)

// Relay passes connections on to one address.
type Relay struct {
	target string
	listen net.Listener
	all    sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	state   State
	ended   bool
	open    map[net.Conn]bool
}

// New starts a relay to target (host:port), until the test's end.
func New(t testing.TB, target string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{target: target, listen: l, open: make(map[net.Conn]bool)}
	r.changed.L = &r.mu
	r.all.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close() // it is open
		r.mu.Lock()
		r.ended = true
		r.reset()
		r.mu.Unlock()
		r.all.Wait()
	})
	return r
}

// Addr is where the relay listens, host:port.
func (r *Relay) Addr() string { return r.listen.Addr().String() }

// Set changes what the relay does.
func (r *Relay) Set(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
	if s == Refuse {
		r.reset()
	}
	r.changed.Broadcast()
}

// reset ends all connections; mu is held.
func (r *Relay) reset() {
	for c := range r.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // one that has ended cannot be reset
		}
		_ = c.Close()
	}
	clear(r.open)
	r.changed.Broadcast()
}

func (r *Relay) accept() {
	for {
		c, err := r.listen.Accept()
		if err != nil {
			return
		}
		if r.keep(c) {
			r.all.Go(func() { r.join(c) })
		}
	}
}

// keep notes a connection, unless connections are refused.
func (r *Relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[c] = true
	if r.ended || r.state == Refuse {
		r.reset()
		return false
	}
	return true
}

// wait returns when the relay passes; false: the connection has ended.
func (r *Relay) wait(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.state == Swallow && r.open[c] && !r.ended {
		r.changed.Wait()
	}
	return r.open[c] && !r.ended
}

func (r *Relay) join(client net.Conn) {
	defer r.drop(client)
	if !r.wait(client) {
		return
	}
	server, err := net.Dial("tcp", r.target)
	if err != nil || !r.keep(server) {
		return
	}
	defer r.drop(server)
	r.all.Go(func() {
		r.pump(server, client)
		r.drop(server)
	})
	r.pump(client, server)
}

func (r *Relay) pump(from, to net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && r.wait(from) {
			_, _ = to.Write(b[:n]) // the other direction ends with it
		}
		if err != nil {
			return
		}
	}
}

func (r *Relay) drop(c net.Conn) {
	_ = c.Close() // it may have been reset
	r.mu.Lock()
	delete(r.open, c)
	r.mu.Unlock()
}
