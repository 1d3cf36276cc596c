// Package tcpstream is one TCP stream at full speed between two places of an emulated
// network, as iperf3 sends it.
package tcpstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/link/probe"
)

// streamBuffer is what is written and read at a time, the same as iperf3 does.
const streamBuffer = 128 << 10

// Congestion is what Linux uses unless told otherwise. BBR, which some machines are told to
// use, paces a stream by the shortest of its round trips; where those take 30 us, that
// measures BBR and not the link.
const Congestion = "cubic"

// Stream is a stream under way. Each end has a thread that blocks in system calls: to
// wait through Go's poller would cost it a third of a core.
type Stream struct {
	from, to       int
	sent, received atomic.Int64 // bytes
	both           sync.WaitGroup
}

// Start opens a connection and begins to send over it.
func Start(from, to probe.Inside) (*Stream, error) {
	s := &Stream{from: -1, to: -1}
	if err := s.connect(from, to); err != nil {
		return nil, fmt.Errorf("start a TCP stream: %w", errors.Join(err, s.Stop()))
	}
	s.both.Go(s.send)
	s.both.Go(s.receive)
	return s, nil
}

func (s *Stream) connect(from, to probe.Inside) error {
	l, err := openTCP(to)
	if err != nil {
		return err
	}
	defer unix.Close(l)
	if err := unix.Listen(l, 1); err != nil {
		return err
	}
	if s.from, err = openTCP(from); err != nil {
		return err
	}
	address, err := unix.Getsockname(l)
	if err != nil {
		return err
	}
	// Bounds connect, too.
	if err := unix.SetsockoptTimeval(s.from, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		return err
	}
	if err := unix.Connect(s.from, address); err != nil {
		return err
	}
	s.to, _, err = unix.Accept4(l, unix.SOCK_CLOEXEC)
	return err
}

func openTCP(at probe.Inside) (fd int, err error) {
	err = at.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, Congestion); err != nil {
			return fmt.Errorf("choose %s: %w", Congestion, err)
		}
		return unix.Bind(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(at.Addr()).As4()})
	})
	return fd, err
}

func (s *Stream) send() {
	buffer := make([]byte, streamBuffer)
	rand.Read(buffer) // untouched memory would all be one page, in the fastest cache
	repeat(func() (int, error) { return unix.Write(s.from, buffer) }, &s.sent)
}

func (s *Stream) receive() {
	buffer := make([]byte, streamBuffer)
	repeat(func() (int, error) { return unix.Read(s.to, buffer) }, &s.received)
}

// repeat makes one call after the other until Stop shuts the connection down.
func repeat(call func() (int, error), bytes *atomic.Int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		n, err := call()
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case err != nil || n == 0:
			return
		}
		bytes.Add(int64(n))
	}
}

// Stop ends the stream at once, with what is under way.
func (s *Stream) Stop() error {
	var errs []error
	ends := []int{s.from, s.to}
	for _, fd := range ends {
		if fd >= 0 {
			_ = unix.Shutdown(fd, unix.SHUT_RDWR) // not connected: no one blocks on it
		}
	}
	s.both.Wait()
	for _, fd := range ends {
		if fd >= 0 {
			errs = append(errs, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}), unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}

// Mark is a moment of a stream.
type Mark struct {
	at    time.Time
	bytes int64
}

// Mark is this moment.
func (s *Stream) Mark() Mark { return Mark{time.Now(), s.received.Load()} }

// Since is the payload received since a mark, in bit/s.
func (s *Stream) Since(m Mark) float64 {
	now := s.Mark()
	return float64(now.bytes-m.bytes) * 8 / now.at.Sub(m.at).Seconds()
}

// Goodput is the payload in bit/s that a new stream carries for some time, after it ran for
// a while.
func Goodput(ctx context.Context, from, to probe.Inside, after, during time.Duration) (float64, error) {
	s, err := Start(from, to)
	if err != nil {
		return 0, err
	}
	var bps float64
	if err = linger.For(ctx, after); err == nil {
		mark := s.Mark()
		err = linger.For(ctx, during)
		bps = s.Since(mark)
	}
	return bps, errors.Join(err, s.Stop())
}
