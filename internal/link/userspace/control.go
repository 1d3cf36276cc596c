package userspace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"skerry/internal/base/linger"
)

const (
	// inHand is how many requests of one connection are worked on at a time.
	maxConcurrent = 16
	// farewell is how long a response may take to leave once the process is to end.
	lastWriteTimeout = time.Second
	// respite is between failing to accept a connection and trying again.
	acceptRetry = 100 * time.Millisecond
)

// listen makes the socket, in the place of one whose process has died.
func listen(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %s: another emulator does", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove stale socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// serve answers connections until ctx ends.
func (a *agent) serve(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	defer a.listener.Close()
	defer context.AfterFunc(ctx, func() { a.listener.Close() })()
	for {
		conn, err := a.listener.Accept()
		if ctx.Err() != nil {
			return
		}
		if err != nil { // such as too many open files, which others may close
			a.log.Warn("accept a connection", "error", err)
			_ = linger.For(ctx, acceptRetry) // the loop looks at the context
			continue
		}
		all.Go(func() { a.serveConn(ctx, conn) })
	}
}

// serveConn answers the requests of one connection, several at a time.
func (a *agent) serveConn(ctx context.Context, conn net.Conn) {
	c := &connWriter{conn: conn}
	defer conn.Close()
	// Reading ends with ctx; what was read is answered.
	defer context.AfterFunc(ctx, func() {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		_ = conn.SetWriteDeadline(time.Now().Add(lastWriteTimeout))
	})()
	var requests sync.WaitGroup
	defer requests.Wait()
	slots := make(chan struct{}, maxConcurrent)
	lines := newLines(conn)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			c.send(response{Error: encodeError(fmt.Errorf("request: %w", err))})
			return
		}
		slots <- struct{}{}
		requests.Go(func() {
			c.send(a.handle(ctx, r))
			<-slots
		})
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		c.send(response{Error: encodeError(errTooLong)})
	}
}

// newLines reads lines of bounded length.
func newLines(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	return lines
}

// connWriter is the writing side of a connection.
type connWriter struct {
	mu   sync.Mutex
	conn net.Conn
}

func (c *connWriter) send(r response) {
	line, err := json.Marshal(r)
	if err != nil {
		line, _ = json.Marshal(response{ID: r.ID, Error: encodeError(err)}) // two strings and a number always can
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.conn.Write(append(line, '\n')) // a client that went away needs no answer
}
