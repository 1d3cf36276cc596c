package server

import (
	"net"
	"sync"
	"sync/atomic"
)

// limitedListener is a listener that closes connections beyond a number at once: what is refused
// costs no memory.
type limitedListener struct {
	net.Listener
	s    *Server
	open atomic.Int64
}

func (b *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= int64(b.s.o.MaxConnections) {
			b.s.metrics.open.Inc()
			return &countedConn{Conn: c, end: sync.OnceFunc(func() {
				b.open.Add(-1)
				b.s.metrics.open.Dec()
			})}, nil
		}
		b.open.Add(-1)
		b.s.metrics.refused.Inc()
		if err := c.Close(); err != nil {
			b.s.o.Log.Debug("refusing a connection", "error", err)
		}
	}
}

type countedConn struct {
	net.Conn
	end func()
}

func (c *countedConn) Close() error {
	c.end()
	return c.Conn.Close()
}
