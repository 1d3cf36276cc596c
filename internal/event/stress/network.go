package stress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"skerry/internal/base/linger"
)

const (
	// A datagram fits the links' MTU of 1500.
	messageSize, datagramSize = 16 << 10, 1400
	reconnectDelay            = 200 * time.Millisecond
	// maxBacklog is how much delay a sender makes up for.
	maxBacklog = 100 * time.Millisecond
)

// Sink receives data on a free port of an address.
func Sink(network, address string) Stressor {
	return func(ctx context.Context, ready func(...any) error) error {
		address := net.JoinHostPort(address, "0")
		if network == "udp" {
			conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", address)
			if err != nil {
				return err
			}
			context.AfterFunc(ctx, func() { conn.Close() })
			if err := ready(conn.LocalAddr().(*net.UDPAddr).Port); err != nil {
				return err
			}
			return discard(ctx, conn.(io.Reader))
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { l.Close() })
		if err := ready(l.Addr().(*net.TCPAddr).Port); err != nil {
			return err
		}
		for {
			conn, err := l.Accept()
			if err != nil {
				return ignoreAfterEnd(ctx, err)
			}
			go func() { // ends with its sender, or the process
				defer conn.Close()
				_, _ = io.Copy(io.Discard, conn) // a closed sender is not an error
			}()
		}
	}
}

func discard(ctx context.Context, from io.Reader) error {
	buffer := make([]byte, 64<<10)
	for {
		if _, err := from.Read(buffer); err != nil {
			return ignoreAfterEnd(ctx, err)
		}
	}
}

func ignoreAfterEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Send sends to a sink at a payload rate in bit/s, 0 for as fast as possible. It reconnects when
// the connection breaks.
func Send(network, address string, bps int64) Stressor {
	return func(ctx context.Context, ready func(...any) error) error {
		if bps < 0 || network != "tcp" && network != "udp" {
			return fmt.Errorf("%w: %s at %d bit/s", errInput, network, bps)
		}
		if err := ready(); err != nil {
			return err
		}
		for ctx.Err() == nil {
			conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
			if err == nil {
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				err = send(conn, network, bps)
				stop()
				conn.Close()
			}
			if errors.Is(err, errInput) {
				return err
			}
			_ = linger.For(ctx, reconnectDelay) // the loop checks the context
		}
		return nil
	}
}

func send(conn net.Conn, network string, bps int64) error {
	data := make([]byte, messageSize)
	if network == "udp" {
		data = data[:datagramSize]
	}
	var each time.Duration // per message
	if bps > 0 {
		each = time.Duration(float64(len(data)*8) / float64(bps) * float64(time.Second))
	}
	due := time.Now()
	for {
		if _, err := conn.Write(data); err != nil {
			return err
		}
		due = due.Add(each)
		wait := time.Until(due)
		if wait < -maxBacklog {
			due = time.Now().Add(-maxBacklog)
		}
		if wait > time.Millisecond {
			time.Sleep(wait)
		}
	}
}
