// Package pathprobe measures the network between two machines: round trips, loss and bandwidth. One machine listens and
// answers only packets with the right token.
package pathprobe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"skerry/internal/machine"
)

// tokenBytes is the length of the token at the start of every packet and stream.
const tokenBytes = 16

// maxPacket in bytes.
const maxPacket = 1500

// Listener echoes packets and reports the received length to senders of streams.
type Listener struct {
	token [tokenBytes]byte
	udp   net.PacketConn
	tcp   net.Listener
	work  sync.WaitGroup
}

// Listen listens on a UDP port and the same TCP port of all addresses. It prefers the ports of labs, which firewalls
// between machines permit.
func Listen(token [tokenBytes]byte) (*Listener, error) {
	for at := machine.FirstPort; at < machine.FirstPort+machine.Ports; at++ {
		if l, err := listenAt(at, token); err == nil {
			return l, nil
		}
	}
	l, err := listenAt(0, token)
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w", err)
	}
	return l, nil
}

func listenAt(at int, token [tokenBytes]byte) (*Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", at))
	if err != nil {
		return nil, err
	}
	p, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port(l)))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &Listener{token: token, udp: p, tcp: l}
	s.work.Go(s.echo)
	s.work.Go(s.accept)
	return s, nil
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func (l *Listener) Port() int { return port(l.tcp) }

// Close closes the listener and waits for its goroutines.
func (l *Listener) Close() error {
	err := errors.Join(l.udp.Close(), l.tcp.Close())
	l.work.Wait()
	return err
}

func (l *Listener) echo() {
	b := make([]byte, maxPacket)
	for {
		n, from, err := l.udp.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && n >= tokenBytes && [tokenBytes]byte(b) == l.token {
			_, _ = l.udp.WriteTo(b[:n], from) // one that is lost is measured as lost
		}
	}
}

func (l *Listener) accept() {
	var conns sync.WaitGroup
	defer conns.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		c, err := l.tcp.Accept()
		if err != nil {
			return
		}
		conns.Go(func() {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			defer c.Close()
			l.countStream(c)
		})
	}
}

// countStream reads a stream to its end and replies with its length.
func (l *Listener) countStream(c net.Conn) {
	var first [tokenBytes]byte
	if _, err := io.ReadFull(c, first[:]); err != nil || first != l.token {
		return
	}
	n, err := io.Copy(io.Discard, c)
	if err == nil {
		_, _ = c.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) // the sender misses it
	}
}
