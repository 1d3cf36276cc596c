package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"sync"

	"skerry/internal/machine/files"
	"skerry/internal/machine/rpc"
)

// system implements files.System on a machine. It is comparable; those of one part are equal.
type system struct {
	m  *Machine
	of rpc.CallTarget
}

var _ files.System = system{}

func (s system) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	a, err := s.m.beginCall(ctx, "/files/Open", s.of, nil, path, offset)
	if err != nil {
		return nil, err
	}
	if err := a.skipNewline(); err != nil {
		a.Close()
		return nil, s.m.callError(ctx, "reading "+path, err)
	}
	return &reading{openCall: a, m: s.m, ctx: ctx, path: path}, nil
}

type reading struct {
	*openCall
	m    *Machine
	ctx  context.Context
	path string
}

func (r *reading) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, &fs.PathError{Op: "read", Path: r.path, Err: err}
	}
	n, err := r.rest.Read(b)
	if errors.Is(err, io.EOF) {
		if broken := r.broken(); broken != nil {
			err = broken
		}
	} else if err != nil {
		err = r.m.callError(r.ctx, "reading "+r.path, err)
	}
	return n, err
}

// broken returns why the file was not read to its end.
func (r *reading) broken() error {
	told, err := url.PathUnescape(r.response.Trailer.Get(rpc.FailureTrailer))
	if err != nil || told == "" {
		return err
	}
	var f rpc.Failure
	if err := json.Unmarshal([]byte(told), &f); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", r.m.name, f.Err())
}

// Write implements files.System. If the source fails, the call breaks off, and the agent leaves the file unchanged because
// the stream has no end.
func (s system) Write(ctx context.Context, path string, mode fs.FileMode, from io.Reader) error {
	source := &noting{from: from}
	a, err := s.m.beginCall(ctx, "/files/Write", s.of, source, path, mode)
	if failed := source.failed(); failed != nil {
		err = fmt.Errorf("%s: write %s: %w", s.m.name, path, failed)
	}
	if a != nil {
		a.Close()
	}
	return err
}

// noting records the error of a source.
type noting struct {
	from io.Reader
	mu   sync.Mutex
	err  error
}

func (n *noting) Read(b []byte) (int, error) {
	k, err := n.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		n.mu.Lock()
		n.err = err
		n.mu.Unlock()
	}
	return k, err
}

func (n *noting) failed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

func (s system) call(ctx context.Context, method string, params ...any) error {
	return callEmpty(ctx, s.m, "/files/"+method, s.of, params...)
}

func (s system) Append(ctx context.Context, path string, data []byte) error {
	return s.call(ctx, "Append", path, data)
}
func (s system) MakeDir(ctx context.Context, path string) error { return s.call(ctx, "MakeDir", path) }
func (s system) Remove(ctx context.Context, path string) error  { return s.call(ctx, "Remove", path) }
func (s system) Rename(ctx context.Context, from, to string) error {
	return s.call(ctx, "Rename", from, to)
}

func (s system) Own(ctx context.Context, path string, uid, gid uint32) error {
	return s.call(ctx, "Own", path, uid, gid)
}

func (s system) Stat(ctx context.Context, path string) (files.Info, error) {
	return callResult[files.Info](ctx, s.m, "/files/Stat", s.of, path)
}

func (s system) List(ctx context.Context, dir string) ([]files.Info, error) {
	return callResult[[]files.Info](ctx, s.m, "/files/List", s.of, dir)
}

func (s system) Space(ctx context.Context, path string) (files.Space, error) {
	return callResult[files.Space](ctx, s.m, "/files/Space", s.of, path)
}
