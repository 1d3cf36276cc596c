package agent

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"

	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// startProcess starts a program and streams its output and exit status as frames until it ends.
func startProcess(ctx context.Context, s *server, x *exchange) error {
	var q rpc.StartRequest
	h, err := s.host(x.of)
	if err == nil {
		err = x.decode(&q)
	}
	if err != nil {
		return err
	}
	c := host.Command{Name: q.Name, Path: q.Path, Args: q.Args, Env: q.Env, Dir: q.Dir, Log: q.Log, UID: q.UID, GID: q.GID}
	frames := rpc.NewFrames(x.w, x.flush)
	// Output must not precede the message that the process has started.
	begun := make(chan struct{})
	if q.In {
		c.Stdin = x.in
	}
	if q.Out {
		c.Stdout = gatedWriter{begun, frames.Writer(rpc.Out)}
	}
	switch {
	case q.Joined:
		c.Stderr = c.Stdout
	case q.Err:
		c.Stderr = gatedWriter{begun, frames.Writer(rpc.Err)}
	}
	p, err := h.Start(ctx, c)
	if err != nil {
		close(begun)
		return err
	}
	ok := x.answer(rpc.StartedProcess{Process: s.addProcess(p), PID: p.PID()}, nil)
	close(begun)
	if !ok {
		return nil
	}
	select {
	case <-p.Done():
		_ = frames.Send(rpc.Ended, encodeFailure(p.Err())) // a disconnected client needs no answer
	case <-ctx.Done():
	}
	return nil
}

func (s *server) addProcess(p host.Process) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.processes[s.last] = p
	return s.last
}

// gatedWriter delays writes until a channel is closed.
type gatedWriter struct {
	begun <-chan struct{}
	to    io.Writer
}

func (a gatedWriter) Write(b []byte) (int, error) {
	<-a.begun
	return a.to.Write(b)
}

// dialFromHost connects from a node and copies bytes both ways until the server has closed its side. The client's
// half-close is forwarded.
func dialFromHost(ctx context.Context, s *server, x *exchange) error {
	var network, addr string
	h, err := s.host(x.of)
	if err == nil {
		err = x.decode(&network, &addr)
	}
	if err != nil {
		return err
	}
	conn, err := h.Dial(ctx, network, addr)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	if !x.answer(empty{}, nil) {
		return nil
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := io.Copy(conn, x.in)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite() // the other side may have gone
		} else {
			conn.Close()
		}
	}()
	_, _ = io.Copy(flushWriter{x}, conn) // its end is what the caller sees
	conn.Close()
	x.end.Close()
	<-sent
	return nil
}

// flushWriter flushes after each write.
type flushWriter struct{ x *exchange }

func (f flushWriter) Write(b []byte) (int, error) {
	n, err := f.x.w.Write(b)
	if err == nil {
		err = f.x.flush()
	}
	return n, err
}

// openFile streams the file. A trailer reports a read error.
func openFile(ctx context.Context, s *server, x *exchange) error {
	var path string
	var offset int64
	f, err := findFiles(s, x.of)
	if err == nil {
		err = x.decode(&path, &offset)
	}
	if err != nil {
		return err
	}
	r, err := f.Open(ctx, path, offset)
	if err != nil {
		return err
	}
	defer r.Close()
	if !x.answer(empty{}, nil) {
		return nil
	}
	if _, err := io.Copy(x.w, r); err != nil {
		x.w.Header().Set(http.TrailerPrefix+rpc.FailureTrailer, url.PathEscape(string(encodeFailure(err))))
	}
	return nil
}

// writeFile replaces a file by the request's stream. If the stream breaks off, the file stays unchanged.
func writeFile(ctx context.Context, s *server, x *exchange) error {
	var path string
	var mode fs.FileMode
	f, err := findFiles(s, x.of)
	if err == nil {
		err = x.decode(&path, &mode)
	}
	if err == nil {
		err = f.Write(ctx, path, mode, x.in)
	}
	if err == nil {
		x.answer(empty{}, nil)
	}
	return err
}

func encodeFailure(err error) []byte {
	if err == nil {
		return nil
	}
	text, _ := json.Marshal(rpc.NewFailure(err)) // texts and numbers
	return text
}
