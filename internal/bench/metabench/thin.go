package metabench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// thin is an HTTP client of one connection that does no more than the protocol asks for.
type thin struct {
	conn net.Conn
	r    *bufio.Reader
	out  []byte
}

func dialThin(ctx context.Context, addr string) (*thin, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &thin{conn: c, r: bufio.NewReader(c)}, nil
}

// errStatus is an answer other than 200.
var errStatus = errors.New("the server refused")

var lengthHeader = []byte("Content-Length: ")

// do posts a command and reads the answer, whose body is thrown away.
func (t *thin) do(command []byte) error {
	t.out = append(t.out[:0], "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: "...)
	t.out = strconv.AppendInt(t.out, int64(len(command)), 10)
	t.out = append(append(t.out, "\r\n\r\n"...), command...)
	if _, err := t.conn.Write(t.out); err != nil {
		return err
	}
	ok, length := false, 0
	for first := true; ; first = false {
		line, err := t.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first:
			ok = bytes.HasPrefix(line, []byte("HTTP/1.1 200"))
		case bytes.HasPrefix(line, lengthHeader):
			if length, err = strconv.Atoi(string(line[len(lengthHeader):])); err != nil {
				return err
			}
		case len(line) == 0:
			if !ok {
				body := make([]byte, min(length, 200))
				_, err := io.ReadFull(t.r, body)
				return errors.Join(fmt.Errorf("%w %s: %s", errStatus, command, body), err)
			}
			_, err := t.r.Discard(length)
			return err
		}
	}
}

// closedLoop has clients send commands one after the other for a time, and returns how
// many were answered per second. next fills in the i-th command of a client.
func closedLoop(ctx context.Context, addr string, clients int, d time.Duration, next func(b []byte, client, i int) []byte) (float64, error) {
	return loops(ctx, clients, d, func(ctx context.Context, client int) (func(i int) error, func() error, error) {
		t, err := dialThin(ctx, addr)
		if err != nil {
			return nil, nil, err
		}
		var b []byte
		return func(i int) error {
			b = next(b[:0], client, i)
			return t.do(b)
		}, t.conn.Close, nil
	})
}

// loops has clients do one thing after the other for a time, and returns how many were done
// per second. begin returns what does a client's i-th, and what ends the client.
func loops(ctx context.Context, clients int, d time.Duration, begin func(ctx context.Context, client int) (do func(i int) error, end func() error, err error)) (float64, error) {
	g, gctx := errgroup.WithContext(ctx)
	var total atomic.Int64
	start := time.Now()
	for client := range clients {
		g.Go(func() error {
			do, end, err := begin(gctx, client)
			if err != nil {
				return err
			}
			n := 0
			for ; time.Since(start) < d && gctx.Err() == nil; n++ {
				if err := do(n); err != nil {
					return errors.Join(err, end())
				}
			}
			total.Add(int64(n))
			return end()
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	return float64(total.Load()) / time.Since(start).Seconds(), ctx.Err()
}
