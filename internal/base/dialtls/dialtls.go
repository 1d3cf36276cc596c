// Package dialtls makes TLS connections that read their configuration for each connection, so that running programs
// use certificates and authorities replaced on disk.
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

type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// Client returns a TLS client over conn to addr (host:port). The server's certificate must be valid for the host, or for
// config.ServerName if it is set. The first read or write performs the handshake.
func Client(conn net.Conn, addr string, config *tls.Config) *tls.Conn {
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	return tls.Client(conn, config)
}

// DialContext returns a function for http.Transport.DialTLSContext. It returns nil if config is nil. dial may be nil for
// the default dialer.
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
