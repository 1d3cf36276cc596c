package userspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link"
	"skerry/internal/link/userspace/device"
)

// Engine is a link.Engine whose links live in another process.
type Engine struct {
	hello   hello
	conn    net.Conn
	process *process // nil when another process started the emulator
	done    chan struct{}
	writing chan struct{} // full while a request is being written

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan response
}

var _ link.Engine = (*Engine)(nil)

// Connect attaches to a running emulator by its socket.
func Connect(ctx context.Context, socket string) (*Engine, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the link emulator: %w", err)
	}
	e := newEngine(conn)
	r, err := e.call(ctx, request{Op: opHello})
	if err == nil && r.Hello == nil {
		err = errors.New("no hello came back")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the link emulator: %w", err), e.disconnect())
	}
	e.hello = *r.Hello
	return e, nil
}

func newEngine(conn net.Conn) *Engine {
	e := &Engine{conn: conn, done: make(chan struct{}), writing: make(chan struct{}, 1), waiting: map[uint64]chan response{}}
	go e.receive()
	return e
}

// Name returns "userspace".
func (e *Engine) Name() string { return "userspace" }

// PID is the emulator's process.
func (e *Engine) PID() int { return e.hello.PID }

// Kind is the kind of devices that links are made of.
func (e *Engine) Kind() device.Kind { return e.hello.Kind }

// RealTime tells whether the emulator has real-time priority, and if not, why.
func (e *Engine) RealTime() (ok bool, reason string) { return e.hello.RealTime, e.hello.Reason }

// Done is closed when the emulator has ended, or was let go.
func (e *Engine) Done() <-chan struct{} { return e.done }

// Create makes all links or none.
func (e *Engine) Create(ctx context.Context, specs []link.Spec) error {
	_, err := e.call(ctx, request{Op: opCreate, Specs: specs})
	return err
}

// Set changes links, all between the same two packets.
func (e *Engine) Set(ctx context.Context, changes []link.Change) error {
	_, err := e.call(ctx, request{Op: opSet, Changes: changes})
	return err
}

// Stats reports the links named, in that order, or all, sorted by ID.
func (e *Engine) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	r, err := e.call(ctx, request{Op: opStats, IDs: ids})
	return r.Stats, err
}

// Lateness tells how late packets of all links were handed over since the last reset,
// and resets when asked to.
func (e *Engine) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	r, err := e.call(ctx, request{Op: opLateness, Reset: reset})
	if err != nil || r.Lateness == nil {
		return link.Lateness{}, err
	}
	return *r.Lateness, nil
}

// Remove takes links away with their devices.
func (e *Engine) Remove(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := e.call(ctx, request{Op: opRemove, IDs: ids})
	return err
}

// closeTimeout bounds how long the emulator may take to end: removing the devices of 1000
// links takes 4 s on two cores.
const closeTimeout = time.Minute

// Close removes every link and ends the emulator, whoever started it.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	pidfd, pidErr := unix.PidfdOpen(e.hello.PID, 0)
	_, err := e.call(ctx, request{Op: opShutdown})
	if errors.Is(err, ErrEnded) {
		err = nil // it went before, with its links
	}
	err = errors.Join(err, e.disconnect())
	if e.process != nil {
		return errors.Join(err, e.process.wait(ctx))
	}
	if pidErr == nil {
		err = errors.Join(err, waitExit(pidfd), unix.Close(pidfd))
	}
	return err
}

// Detach lets go of the emulator and leaves it running, with its links. One that ends with
// its owner ends when this process does.
func (e *Engine) Detach() error { return e.disconnect() }

func (e *Engine) disconnect() error {
	err := e.conn.Close()
	<-e.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// call sends a request and waits for its response.
func (e *Engine) call(ctx context.Context, r request) (response, error) {
	reply := make(chan response, 1)
	if err := e.send(ctx, &r, reply); errors.Is(err, ErrEnded) {
		return response{}, e.endError()
	} else if err != nil {
		return response{}, err
	}
	select {
	case got := <-reply:
		return got, decodeError(got.Error)
	case <-e.done:
		select {
		case got := <-reply: // it came just before the end
			return got, decodeError(got.Error)
		default:
			return response{}, e.endError()
		}
	case <-ctx.Done():
		e.forget(r.ID)
		return response{}, fmt.Errorf("%s links: %w", r.Op, ctx.Err())
	}
}

func (e *Engine) send(ctx context.Context, r *request, reply chan response) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s links: %w", r.Op, err)
	}
	e.mu.Lock()
	e.last++
	r.ID = e.last
	e.waiting[r.ID] = reply
	e.mu.Unlock()
	err := e.write(ctx, r)
	if err != nil {
		e.forget(r.ID)
	}
	return err
}

// write writes a request, one at a time. An emulator that does not read is let go when
// ctx has ended.
func (e *Engine) write(ctx context.Context, r *request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("%s links: %w", r.Op, err)
	}
	if len(line) >= maxLine {
		return fmt.Errorf("%s links: %w", r.Op, errTooLong)
	}
	select {
	case e.writing <- struct{}{}:
		defer func() { <-e.writing }()
	case <-ctx.Done():
		return fmt.Errorf("%s links: %w", r.Op, ctx.Err())
	}
	limited := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(limited)
		_ = e.conn.SetWriteDeadline(time.Now().Add(lastWriteTimeout))
	})
	_, err = e.conn.Write(append(line, '\n'))
	if !stop() {
		<-limited
		_ = e.conn.SetWriteDeadline(time.Time{})
	}
	if err == nil {
		return nil
	}
	e.conn.Close() // a part of the line may have gone: no other can follow it
	if ctx.Err() != nil {
		return fmt.Errorf("%s links: %w", r.Op, ctx.Err())
	}
	return fmt.Errorf("%w: %w", ErrEnded, err)
}

// forget makes a response that still comes go nowhere.
func (e *Engine) forget(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.waiting, id)
}

// receive hands responses to those who wait for them.
func (e *Engine) receive() {
	defer close(e.done)
	lines := newLines(e.conn)
	for lines.Scan() {
		var r response
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return // not our protocol: as good as gone
		}
		e.mu.Lock()
		if reply, ok := e.waiting[r.ID]; ok {
			delete(e.waiting, r.ID)
			reply <- r
		}
		e.mu.Unlock()
	}
}

func (e *Engine) endError() error {
	if e.process != nil {
		return e.process.exitError()
	}
	return ErrEnded
}

// waitExit waits until the process of a pidfd has ended.
func waitExit(pidfd int) error {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(closeTimeout.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for the link emulator: %w", err)
		case n == 0:
			return fmt.Errorf("the link emulator does not end within %v", closeTimeout)
		default:
			return nil
		}
	}
}
