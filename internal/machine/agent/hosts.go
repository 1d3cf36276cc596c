package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"syscall"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

var hostCalls = map[string]call{
	"/host": newCall(findHost, func(_ context.Context, h host.Host, _ empty) (rpc.HostInfo, error) {
		return rpc.HostInfo{Name: h.Name(), Site: h.Site(), Addr: h.Addr(), Dir: h.Dir()}, nil
	}),
	"/host/usage":   newCall(findHost, func(_ context.Context, h host.Host, _ empty) (host.Usage, error) { return h.Usage() }),
	"/host/control": newCall(findHost, withoutResult(controlHost)),
	"/host/start":   startProcess,
	"/host/dial":    dialFromHost,
}

var processCalls = map[string]call{
	"/process/stop": newCall(findProcess, withoutResult(func(ctx context.Context, p host.Process, s rpc.StopRequest) error { return p.Stop(ctx, s.Grace) })),
	"/process/kill": newCall(findProcess, withoutResult(func(_ context.Context, p host.Process, family bool) error {
		if family {
			return p.KillFamily()
		}
		return p.Kill()
	})),
	"/process/signal": newCall(findProcess, withoutResult(func(_ context.Context, p host.Process, s syscall.Signal) error { return p.Signal(s) })),
	"/process/tail":   newCall(findProcess, func(_ context.Context, p host.Process, lines int) (string, error) { return p.Tail(lines), nil }),
}

func findProcess(s *server, of rpc.CallTarget) (host.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.processes[of.Process]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("unknown process %d", of.Process)
}

// startProcess starts a program and streams its output and exit status as frames until it ends.
func startProcess(ctx context.Context, s *server, x *exchange) {
	h, err := s.host(x.of)
	if err != nil {
		x.answer(nil, err)
		return
	}
	q, err := decodeParams[rpc.StartRequest](x)
	if err != nil {
		x.answer(nil, err)
		return
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
		x.answer(nil, err)
		return
	}
	ok := x.answer(rpc.StartedProcess{Process: s.addProcess(p), PID: p.PID()}, nil)
	close(begun)
	if !ok {
		return
	}
	select {
	case <-p.Done():
		_ = frames.Send(rpc.Ended, encodeFailure(p.Err())) // a disconnected client needs no answer
	case <-ctx.Done():
	}
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
func dialFromHost(ctx context.Context, s *server, x *exchange) {
	h, err := s.host(x.of)
	if err != nil {
		x.answer(nil, err)
		return
	}
	to, err := decodeParams[rpc.DialRequest](x)
	if err != nil {
		x.answer(nil, err)
		return
	}
	conn, err := h.Dial(ctx, to.Network, to.Addr)
	if err != nil {
		x.answer(nil, err)
		return
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	if !x.answer(empty{}, nil) {
		return
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

func controlHost(ctx context.Context, h host.Host, c rpc.ControlRequest) error {
	n, ok := h.(host.Controls)
	if !ok {
		return fmt.Errorf("%s %s: %w", c.Action, h.Name(), errors.ErrUnsupported)
	}
	switch c.Action {
	case rpc.Freeze:
		return n.Freeze(ctx)
	case rpc.Thaw:
		return n.Thaw()
	case rpc.MountDisk:
		return n.MountDisk(c.Bytes)
	case rpc.FillDisk:
		return n.FillDisk()
	case rpc.FreeDisk:
		return n.FreeDisk()
	case rpc.LimitDisk:
		return n.LimitDisk(c.Disk)
	case rpc.LimitCPU:
		return n.LimitCPU(c.Cores)
	}
	return fmt.Errorf("%s %s: %w", c.Action, h.Name(), errors.ErrUnsupported)
}

var fileCalls = map[string]call{
	"/files/open":  openFile,
	"/files/write": writeFile,
	"/files/append": newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error {
		return f.Append(ctx, q.Path, q.Data)
	})),
	"/files/mkdir":  newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error { return f.MakeDir(ctx, q.Path) })),
	"/files/remove": newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error { return f.Remove(ctx, q.Path) })),
	"/files/rename": newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error { return f.Rename(ctx, q.Path, q.To) })),
	"/files/own": newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error {
		return f.Own(ctx, q.Path, q.UID, q.GID)
	})),
	"/files/stat": newCall(findFiles, func(ctx context.Context, f files.System, q rpc.FileRequest) (files.Info, error) {
		return f.Stat(ctx, q.Path)
	}),
	"/files/list": newCall(findFiles, func(ctx context.Context, f files.System, q rpc.FileRequest) ([]files.Info, error) {
		return f.List(ctx, q.Path)
	}),
	"/files/space": newCall(findFiles, func(ctx context.Context, f files.System, q rpc.FileRequest) (files.Space, error) {
		return f.Space(ctx, q.Path)
	}),
}

// findFiles returns the file system of a node or of a part.
func findFiles(s *server, of rpc.CallTarget) (files.System, error) {
	if of.Node == "" && of.Container == nil {
		p, err := s.part(of)
		if err != nil {
			return nil, err
		}
		return p.Files(), nil
	}
	h, err := s.host(of)
	if err != nil {
		return nil, err
	}
	return h.Files(), nil
}

func decodeFileRequest(s *server, x *exchange) (files.System, rpc.FileRequest, error) {
	q, err := decodeParams[rpc.FileRequest](x)
	if err != nil {
		return nil, q, err
	}
	f, err := findFiles(s, x.of)
	return f, q, err
}

// openFile streams the file. A trailer reports a read error.
func openFile(ctx context.Context, s *server, x *exchange) {
	f, q, err := decodeFileRequest(s, x)
	if err != nil {
		x.answer(nil, err)
		return
	}
	r, err := f.Open(ctx, q.Path, q.Offset)
	if err != nil {
		x.answer(nil, err)
		return
	}
	defer r.Close()
	if !x.answer(empty{}, nil) {
		return
	}
	if _, err := io.Copy(x.w, r); err != nil {
		x.w.Header().Set(http.TrailerPrefix+rpc.FailureTrailer, url.PathEscape(string(encodeFailure(err))))
	}
}

// writeFile replaces a file by the request's stream. If the stream breaks off, the file stays unchanged.
func writeFile(ctx context.Context, s *server, x *exchange) {
	f, q, err := decodeFileRequest(s, x)
	if err == nil {
		err = f.Write(ctx, q.Path, fs.FileMode(q.Mode), x.in)
	}
	x.answer(empty{}, err)
}

func encodeFailure(err error) []byte {
	if err == nil {
		return nil
	}
	text, _ := json.Marshal(rpc.NewFailure(err)) // texts and numbers
	return text
}
