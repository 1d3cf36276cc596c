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
	// maxConcurrent bounds the requests of one connection that are handled at the same time.
	maxConcurrent = 16
	// lastWriteTimeout bounds the last write to a connection that is being closed.
	lastWriteTimeout = time.Second
	// acceptRetry is the pause after a failed accept.
	acceptRetry = 100 * time.Millisecond
)

// listen creates the socket and replaces the stale socket of a process that died.
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

// serve accepts connections until ctx ends.
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
		if err != nil { // for example too many open files
			a.log.Warn("accept a connection", "error", err)
			_ = linger.For(ctx, acceptRetry) // the loop checks the context
			continue
		}
		all.Go(func() { a.serveConn(ctx, conn) })
	}
}

// serveConn handles the requests of one connection, several at a time.
func (a *agent) serveConn(ctx context.Context, conn net.Conn) {
	c := &connWriter{conn: conn}
	defer conn.Close()
	// The end of ctx stops reading. Requests that were read are still answered.
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

func newLines(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	return lines
}

// connWriter serialises the responses on a connection.
type connWriter struct {
	mu   sync.Mutex
	conn net.Conn
}

func (c *connWriter) send(r response) {
	line, err := json.Marshal(r)
	if err != nil {
		line, _ = json.Marshal(response{ID: r.ID, Error: encodeError(err)}) // a response with only an error always encodes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.conn.Write(append(line, '\n')) // the client may have gone
}
