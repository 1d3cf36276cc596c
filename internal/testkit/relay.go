// Package relay is a TCP relay on loopback between a test and a server, which the test cuts:
// connections are refused, or - as with packets that are dropped - nothing comes any more.
package testkit

import (
	"net"
	"sync"
	"testing"
)

// RelayState is what a relay does.
type RelayState int

// States.
const (
	// Pass lets everything through.
	Pass RelayState = iota
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
	state   RelayState
	ended   bool
	open    map[net.Conn]bool
}

// NewRelay starts a relay to target (host:port), until the test's end.
func NewRelay(t testing.TB, target string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{target: target, listen: l, open: make(map[net.Conn]bool)}
	r.changed.L = &r.mu
	r.all.Go(r.acceptConns)
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
func (r *Relay) Set(s RelayState) {
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

func (r *Relay) acceptConns() {
	for {
		c, err := r.listen.Accept()
		if err != nil {
			return
		}
		if r.addConn(c) {
			r.all.Go(func() { r.forward(c) })
		}
	}
}

// addConn notes a connection, unless connections are refused.
func (r *Relay) addConn(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[c] = true
	if r.ended || r.state == Refuse {
		r.reset()
		return false
	}
	return true
}

// waitPass returns when the relay passes; false: the connection has ended.
func (r *Relay) waitPass(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.state == Swallow && r.open[c] && !r.ended {
		r.changed.Wait()
	}
	return r.open[c] && !r.ended
}

func (r *Relay) forward(client net.Conn) {
	defer r.removeConn(client)
	if !r.waitPass(client) {
		return
	}
	server, err := net.Dial("tcp", r.target)
	if err != nil || !r.addConn(server) {
		return
	}
	defer r.removeConn(server)
	r.all.Go(func() {
		r.copyData(server, client)
		r.removeConn(server)
	})
	r.copyData(client, server)
}

func (r *Relay) copyData(from, to net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && r.waitPass(from) {
			_, _ = to.Write(b[:n]) // the other direction ends with it
		}
		if err != nil {
			return
		}
	}
}

func (r *Relay) removeConn(c net.Conn) {
	_ = c.Close() // it may have been reset
	r.mu.Lock()
	delete(r.open, c)
	r.mu.Unlock()
}

// SilentServer is the address of a server which takes connections, as the kernel does for a process
// that is stopped, and never answers, until the test's end.
func SilentServer(t testing.TB) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}
