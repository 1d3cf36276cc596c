// Package dialtls connects with TLS whose configuration is asked for when a connection is made:
// certificates and authorities that are replaced on disk are taken up by programs that run.
package dialtls

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// handshakeTime bounds a handshake.
const handshakeTime = 10 * time.Second

// Dial makes a connection.
type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// Client is the TLS of a connection to a server's address, host:port: the certificate is to be
// for that host, unless the configuration names another one. The handshake comes with the first
// use.
func Client(conn net.Conn, addr string, config *tls.Config) *tls.Conn {
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	return tls.Client(conn, config)
}

// DialContext is what an http.Transport dials https with; nil where there is no configuration to ask
// for. dial is nil for the machine's own.
func DialContext(dial Dial, config func() *tls.Config) Dial {
	if config == nil {
		return nil
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshakeTime}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, handshakeTime)
		defer cancel()
		secure := Client(conn, addr, config())
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("handshake with %s: %w", addr, err), conn.Close())
		}
		return secure, nil
	}
}
