package testkit

import (
	"net"
	"sync"
	"testing"
)

// RelayState is the mode of a Relay.
type RelayState int

// Modes of a Relay.
const (
	// Pass forwards all traffic.
	Pass RelayState = iota
	// Refuse resets open and new connections.
	Refuse
	// Swallow accepts connections and holds back all data in both directions, as with dropped packets. Pass then delivers
	// the held data.
	Swallow
)

// Relay is a TCP relay on loopback between a test and a server. The test can cut its connections.
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

// NewRelay starts a relay to target (host:port) that runs until the test ends.
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
		_ = l.Close() // open until here
		r.mu.Lock()
		r.ended = true
		r.reset()
		r.mu.Unlock()
		r.all.Wait()
	})
	return r
}

// Addr returns the address of the relay, host:port.
func (r *Relay) Addr() string { return r.listen.Addr().String() }

// Set changes the mode of the relay.
func (r *Relay) Set(s RelayState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
	if s == Refuse {
		r.reset()
	}
	r.changed.Broadcast()
}

// reset resets all connections. The caller holds mu.
func (r *Relay) reset() {
	for c := range r.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // fails for a connection that has ended
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

// addConn registers a connection. It resets the connection and returns false if connections are refused.
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

// waitPass waits until the relay forwards data. It returns false if the connection has ended.
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

// SilentServer returns the address of a server that accepts connections and never answers, like a stopped process. It
// runs until the test ends.
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
