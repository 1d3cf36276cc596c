package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxEvents bounds the events handled between two checks of clock and tasks.
const maxEvents = 64

// poller waits for devices and timers.
type poller struct {
	epoll, event int
	events       [maxEvents]unix.EpollEvent
	timeout      unix.Timespec
}

func (o *poller) open() error {
	var err error
	if o.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	if o.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err == nil {
		err = o.add(o.event, 0)
	}
	if err == nil {
		if o.wait(0) == interrupted { // without waiting nothing can interrupt it
			err = errors.New("epoll_pwait2 is missing; Linux 5.11 or newer is needed")
		}
	}
	if err != nil {
		return errors.Join(err, o.close())
	}
	return nil
}

func (o *poller) close() error {
	return errors.Join(unix.Close(o.event), unix.Close(o.epoll))
}

// add watches a descriptor, edge-triggered. Its events carry the number.
func (o *poller) add(fd, number int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(number)}
	if err := unix.EpollCtl(o.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("watch descriptor %d: %w", fd, err)
	}
	return nil
}

func (o *poller) remove(fd int) {
	// Fails only if the descriptor is closed, which ended the watch.
	_ = unix.EpollCtl(o.epoll, unix.EPOLL_CTL_DEL, fd, nil)
}

// wake ends a wait. It may be called from any goroutine.
func (o *poller) wake() {
	one := binary.NativeEndian.AppendUint64(nil, 1)
	// Fails only with 2^64-2 pending wake-ups.
	_, _ = unix.Write(o.event, one)
}

// clearWakeups discards pending wake-ups.
func (o *poller) clearWakeups() {
	var count [8]byte
	_, _ = readRaw(o.event, count[:]) // EAGAIN without pending wake-ups
}

// interrupted is the result of a wait that a signal of the Go runtime ended.
const interrupted = -1

// wait returns the number of events within a time in ns, 0 on timeout.
func (o *poller) wait(ns int64) int {
	o.timeout = unix.NsecToTimespec(ns)
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(o.epoll), uintptr(unsafe.Pointer(&o.events)),
		maxEvents, uintptr(unsafe.Pointer(&o.timeout)), 0, 0)
	if errno != 0 {
		return interrupted
	}
	return int(n)
}

// block waits without a timeout. It releases the Go processor.
func (o *poller) block() int {
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(o.epoll), uintptr(unsafe.Pointer(&o.events)),
		maxEvents, 0, 0, 0)
	if errno != 0 {
		return interrupted
	}
	return int(n)
}

func readRaw(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

func writeRaw(fd int, b []byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return errno
}

// sleepRaw sleeps without releasing the Go processor.
func sleepRaw(ns int64) {
	t := unix.NsecToTimespec(ns)
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

const (
	// spins is the number of tries before the holder is assumed not to run.
	spins = 2000
	// spinNap is the sleep after that: the holder may need this processor.
	spinNap = int64(20 * time.Microsecond)
)

// spin is a lock between packet threads that is held for tens of nanoseconds. A parking lock would depend on
// runtime threads, which may have no processor.
//
// A holder that loses its processor blocks the others. So nothing slow happens under the lock: no system call,
// and no allocation for steady traffic.
type spin struct{ held atomic.Bool }

func (s *spin) lock() {
	for n := 1; !s.try(); n++ {
		if n%spins == 0 {
			sleepRaw(spinNap)
		}
	}
}

// try acquires the lock if it is free.
func (s *spin) try() bool { return !s.held.Load() && s.held.CompareAndSwap(false, true) }

func (s *spin) unlock() { s.held.Store(false) }
