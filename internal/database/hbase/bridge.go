package hbase

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/machine/host"
)

var errBridge = errors.New("the bridge to HBase's client ended")

// bridge talks to a Java process with HBase's client (bridge/Bridge.java). Each goroutine calls through its own slot.
type bridge struct {
	// end closes the process's input and waits for its end. A second call does nothing.
	end func() error

	out     io.Writer
	mu      sync.Mutex // guards the rest
	waiting []byte     // requests to be written
	spare   []byte
	writing bool
	slots   []*slot
	free    []uint32

	done chan struct{} // closed when no replies come any more; err is set then
	err  error
}

const maxQuoted = 400

type slot struct {
	number uint32
	ready  chan struct{} // the reply is in body

	mu     sync.Mutex
	call   uint32 // counts the slot's calls
	waited bool
	body   []byte
}

// newBridge serves a process's output and input until the output ends.
func newBridge(replies io.Reader, requests io.Writer, end func() error) *bridge {
	b := &bridge{out: requests, end: sync.OnceValue(end), done: make(chan struct{})}
	go func() {
		err := b.receive(bufio.NewReaderSize(replies, 1<<16))
		b.err = fmt.Errorf("%w: %w", errBridge, err)
		close(b.done)
	}()
	return b
}

// receive passes replies to their waiters and drops replies without one.
func (b *bridge) receive(in *bufio.Reader) error {
	var head [4 + 8]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		size, id := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint64(head[4:])
		if size < replyHead || size > maxReply {
			// What a Java process says before it can run a program is text.
			more, _ := in.Peek(min(in.Buffered(), maxQuoted)) // they are there
			return fmt.Errorf("%w: %q", errProtocol, append(head[:], more...))
		}
		s := b.slotAt(uint32(id >> 32))
		if s == nil {
			return fmt.Errorf("%w: response to unknown call %d", errProtocol, id)
		}
		if err := s.receive(in, int(size), uint32(id)); err != nil {
			return err
		}
	}
}

func (b *bridge) slotAt(number uint32) *slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	if int(number) >= len(b.slots) {
		return nil
	}
	return b.slots[number]
}

func (s *slot) receive(in *bufio.Reader, size int, call uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waited || s.call != call {
		_, err := in.Discard(size - 8)
		return err
	}
	if cap(s.body) < size {
		s.body = make([]byte, size)
	}
	s.body = s.body[:size]
	if _, err := io.ReadFull(in, s.body[8:]); err != nil {
		return err
	}
	s.waited = false
	s.ready <- struct{}{}
	return nil
}

func (b *bridge) acquireSlot() *slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		s := b.slots[b.free[n-1]]
		b.free = b.free[:n-1]
		return s
	}
	s := &slot{number: uint32(len(b.slots)), ready: make(chan struct{}, 1)}
	b.slots = append(b.slots, s)
	return s
}

func (b *bridge) releaseSlot(s *slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, s.number)
}

// call sends a request begun by newFrame and waits for the reply, valid until the slot's next call.
func (b *bridge) call(ctx context.Context, s *slot, frame []byte, limit time.Duration) (reply, error) {
	s.mu.Lock()
	s.call++
	s.waited = true
	id := uint64(s.number)<<32 | uint64(s.call)
	s.mu.Unlock()
	finishFrame(frame, id, int32(min(max(limit.Milliseconds(), 1), math.MaxInt32)))
	if err := b.send(frame); err != nil {
		s.abandon()
		select {
		case <-b.done: // a process that stops reading prints the reason and exits
			return reply{}, b.err
		case <-ctx.Done():
			return reply{}, fmt.Errorf("%w: %w", errBridge, err)
		}
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		if s.abandon() {
			return reply{}, context.Cause(ctx)
		}
	case <-b.done:
		if s.abandon() {
			return reply{}, b.err
		}
	}
	return parseReply(s.body)
}

func (s *slot) abandon() bool {
	s.mu.Lock()
	waited := s.waited
	s.waited = false
	s.mu.Unlock()
	if !waited {
		<-s.ready // it came at the last moment
	}
	return waited
}

// send writes a request. A caller that finds no writer also writes what others add meanwhile.
func (b *bridge) send(frame []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, frame...)
	if b.writing {
		return nil
	}
	b.writing = true
	defer func() { b.writing = false }()
	for len(b.waiting) > 0 {
		now := b.waiting
		b.waiting = b.spare[:0]
		b.mu.Unlock()
		_, err := b.out.Write(now)
		b.mu.Lock()
		b.spare = now[:0]
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bridge) Close() error {
	err := b.end()
	<-b.done
	return err
}

// bridgeGrace is the time for a bridge to exit after the end of its input.
const bridgeGrace = 5 * time.Second

type command struct {
	java string
	args []string
}

// bridgeCommand runs the bridge with HBase's settings and further JVM flags.
func bridgeCommand(javaPath, classpath, hostsFile string, heap int64, flags []string, settings []property) command {
	args := append(append(javaArguments(heap, false, hostsFile), flags...), "-cp", classpath, "bridge.Bridge")
	for _, p := range settings {
		args = append(args, p.name+"="+p.value)
	}
	return command{java: javaPath, args: args}
}

type pipes struct {
	stdin, requests *os.File
	replies, stdout *os.File
}

func newPipes() (p pipes, err error) {
	if p.stdin, p.requests, err = os.Pipe(); err != nil {
		return p, err
	}
	if p.replies, p.stdout, err = os.Pipe(); err != nil {
		return p, errors.Join(err, p.stdin.Close(), p.requests.Close())
	}
	return p, nil
}

func (p pipes) closeChildEnds() error { return errors.Join(p.stdin.Close(), p.stdout.Close()) }

func (p pipes) closeOwnEnds() error { return errors.Join(p.requests.Close(), p.replies.Close()) }

// startLocalBridge runs a bridge as a child of this process. The bridge ends when its input ends.
func startLocalBridge(c command) (*bridge, error) {
	p, err := newPipes()
	if err != nil {
		return nil, fmt.Errorf("starting the bridge: %w", err)
	}
	cmd := exec.Command(c.java, c.args...)
	last := tail.New(tailBytes)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, last
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the bridge: %w", err), p.closeChildEnds(), p.closeOwnEnds())
	}
	if err := p.closeChildEnds(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the bridge: %w", err), cmd.Process.Kill(), cmd.Wait(), p.closeOwnEnds())
	}
	replies := tailReader{p.replies, last.String}
	return newBridge(replies, p.requests, func() error {
		closing := p.requests.Close()
		late := time.AfterFunc(bridgeGrace, func() { _ = cmd.Process.Kill() }) // it may just have ended
		err := cmd.Wait()
		late.Stop()
		return errors.Join(closing, err, p.replies.Close())
	}), nil
}

// endPolicy is the time for a bridge to end after its input, and what runs after a clean end.
type endPolicy struct {
	grace time.Duration
	onEnd func()
}

func startBridgeOn(ctx context.Context, h host.Host, c command, dir, log string, ends endPolicy) (*bridge, error) {
	p, err := newPipes()
	if err != nil {
		return nil, fmt.Errorf("starting the bridge on %s: %w", h.Name(), err)
	}
	process, err := h.Start(ctx, host.Command{Name: "bridge", Path: c.java, Args: c.args, Dir: dir, Log: log, Stdin: p.stdin, Stdout: p.stdout})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the bridge on %s: %w", h.Name(), err), p.closeChildEnds(), p.closeOwnEnds())
	}
	// Its ends stay open until it has ended: of one on another machine they are read and written here.
	ended := make(chan error, 1)
	go func() {
		<-process.Done()
		ended <- p.closeChildEnds()
	}()
	replies := tailReader{p.replies, func() string { return process.Tail(tailLines) }}
	deaf := sync.OnceValue(p.replies.Close)
	return newBridge(replies, p.requests, func() error {
		closing := p.requests.Close()
		var err error
		select {
		case <-process.Done():
			if process.Err() == nil {
				ends.onEnd()
			}
		case <-time.After(ends.grace):
			_ = deaf() // told below; who has stopped reading would keep the end from being noticed
			err = process.Kill()
		}
		return errors.Join(closing, err, <-ended, deaf())
	}), nil
}

// tailReader adds the last output of the process to the read error.
type tailReader struct {
	io.Reader
	last func() string
}

func (t tailReader) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if err != nil {
		if text := strings.TrimSpace(t.last()); text != "" {
			err = fmt.Errorf("%w; its last output:\n%s", err, text)
		}
	}
	return n, err
}

const (
	tailLines = 12
	tailBytes = 4 << 10
)
