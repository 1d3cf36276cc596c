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

// Engine is a link.Engine that controls an emulator in another process.
type Engine struct {
	hello   hello
	conn    net.Conn
	process *process // nil if another process started the emulator
	done    chan struct{}
	writing chan struct{} // holds a token while a request is being written

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan response
}

var _ link.Engine = (*Engine)(nil)

// Connect attaches to a running emulator through its socket.
func Connect(ctx context.Context, socket string) (*Engine, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the link emulator: %w", err)
	}
	e := newEngine(conn)
	r, err := e.call(ctx, request{Op: opHello})
	if err == nil && r.Hello == nil {
		err = errors.New("no hello in the response")
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

func (e *Engine) Name() string { return "userspace" }

// PID returns the process ID of the emulator.
func (e *Engine) PID() int { return e.hello.PID }

// Kind returns the kind of devices that links are made of.
func (e *Engine) Kind() device.Kind { return e.hello.Kind }

// RealTime reports whether the emulator has real-time priority, and the reason if it has not.
func (e *Engine) RealTime() (ok bool, reason string) { return e.hello.RealTime, e.hello.Reason }

// Done returns a channel that is closed when the connection to the emulator ends.
func (e *Engine) Done() <-chan struct{} { return e.done }

func (e *Engine) Create(ctx context.Context, specs []link.Spec) error {
	_, err := e.call(ctx, request{Op: opCreate, Specs: specs})
	return err
}

func (e *Engine) Set(ctx context.Context, changes []link.Change) error {
	_, err := e.call(ctx, request{Op: opSet, Changes: changes})
	return err
}

func (e *Engine) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	r, err := e.call(ctx, request{Op: opStats, IDs: ids})
	return r.Stats, err
}

// Lateness returns the lateness of the packets of all links since the last reset, and optionally resets it.
func (e *Engine) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	r, err := e.call(ctx, request{Op: opLateness, Reset: reset})
	if err != nil || r.Lateness == nil {
		return link.Lateness{}, err
	}
	return *r.Lateness, nil
}

func (e *Engine) Remove(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := e.call(ctx, request{Op: opRemove, IDs: ids})
	return err
}

// closeTimeout bounds the shutdown of the emulator: removing the devices of 1000 links takes 4 s on two cores.
const closeTimeout = time.Minute

// Close removes every link and ends the emulator, also one that another process started.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	pidfd, pidErr := unix.PidfdOpen(e.hello.PID, 0)
	_, err := e.call(ctx, request{Op: opShutdown})
	if errors.Is(err, ErrEnded) {
		err = nil // it ended earlier, with its links
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

// Detach disconnects from the emulator, which continues with its links. An emulator started with
// ExitWithOwner still ends with this process.
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
		case got := <-reply: // received just before the connection ended
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

// write sends one request at a time. If the emulator does not read until ctx ends, write closes the connection.
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
	e.conn.Close() // a partial line may have been sent
	if ctx.Err() != nil {
		return fmt.Errorf("%s links: %w", r.Op, ctx.Err())
	}
	return fmt.Errorf("%w: %w", ErrEnded, err)
}

// forget drops the response to a request.
func (e *Engine) forget(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.waiting, id)
}

// receive passes responses to the waiting calls.
func (e *Engine) receive() {
	defer close(e.done)
	lines := newLines(e.conn)
	for lines.Scan() {
		var r response
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return // protocol error: end the connection
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
			return fmt.Errorf("link emulator did not end within %v", closeTimeout)
		default:
			return nil
		}
	}
}
