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

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/link/userspace/device"
)

// Operations of the protocol.
const (
	opHello    = "hello"
	opCreate   = "create"
	opSet      = "set"
	opStats    = "stats"
	opLateness = "lateness"
	opRemove   = "remove"
	opShutdown = "shutdown"
)

// maxLine bounds a request or response in bytes: the statistics of about 10,000 links.
const maxLine = 16 << 20

// config is the first line on standard input.
type config struct {
	Socket        string      `json:"socket"`
	ExitWithOwner bool        `json:"exit_with_owner,omitempty"`
	Kind          device.Kind `json:"kind,omitempty"`
}

// ready is the one line on standard output, written when the socket is open or the start failed.
type ready struct {
	Error *wireError `json:"error,omitempty"`
}

// request is one line; the response has the same ID.
type request struct {
	ID      uint64        `json:"id"`
	Op      string        `json:"op"`
	Specs   []link.Spec   `json:"specs,omitempty"`
	Changes []link.Change `json:"changes,omitempty"`
	IDs     []string      `json:"ids,omitempty"`
	Reset   bool          `json:"reset,omitempty"`
}

type response struct {
	ID       uint64         `json:"id"`
	Error    *wireError     `json:"error,omitempty"`
	Hello    *hello         `json:"hello,omitempty"`
	Stats    []link.Stats   `json:"stats,omitempty"`
	Lateness *link.Lateness `json:"lateness,omitempty"`
}

// hello describes a running emulator.
type hello struct {
	PID      int         `json:"pid"`
	Kind     device.Kind `json:"kind"`
	RealTime bool        `json:"real_time"`
	Reason   string      `json:"reason,omitempty"` // if RealTime is false
}

type wireError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// codes identify the errors that keep their identity across the connection.
var codes = map[string]error{
	"invalid":     link.ErrInvalid,
	"exists":      link.ErrExists,
	"unknown":     link.ErrUnknown,
	"unavailable": ErrUnavailable,
}

func encodeError(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Message: err.Error(), Advice: advice.Of(err)}
	for code, known := range codes {
		if errors.Is(err, known) {
			w.Code = code
		}
	}
	return w
}

func decodeError(w *wireError) error {
	if w == nil {
		return nil
	}
	err := advice.WithText(w.Message, codes[w.Code])
	if w.Advice != "" {
		err = advice.With(err, "%s", w.Advice)
	}
	return err
}

var errTooLong = fmt.Errorf("message longer than %d bytes", maxLine)

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
		return nil, fmt.Errorf("listen on %s: in use by another emulator", path)
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
