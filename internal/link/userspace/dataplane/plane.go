// Package dataplane moves the packets of all links on one thread.
//
//	device A ─read─► direction A→B (package shape) ─due─► write ─► device B
//	                  │                         ▲
//	                  └ its FIFO ─► heap of the directions by their first due time
//
// The thread sleeps in epoll until a device has packets or one is due. It keeps
// its Go processor while it sleeps (RawSyscall), because after a blocking system call it
// would have to be given one by a thread of lower priority. Nothing is allocated while
// traffic is steady.
package dataplane

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace/lateness"
	"skerry/internal/link/userspace/packet"
)

// ErrStopped is returned by what needs a plane that has ended.
var ErrStopped = errors.New("the data plane has stopped")

// Options of a plane.
type Options struct {
	// Memory bounds the bytes of buffers of packets in flight on all links. What
	// exceeds it is dropped and counted with the full queues.
	Memory int64
	// Prepare is called on the plane's thread before it begins, to give it priority.
	Prepare func()
	// RealTime says that the thread runs at a real-time priority and must rest to
	// stay below the kernel's limit on that.
	RealTime bool
}

// Plane is the thread and the links it serves.
type Plane struct {
	options Options
	poll    poller
	begin   time.Time
	tasks   atomic.Pointer[task]
	done    chan struct{}
	total   atomic.Pointer[lateness.Histogram] // of all directions, since the last mark

	// What follows belongs to the thread.
	stopping bool
	ports    []*port // by their number in epoll events; 0 is the wake-up
	free     []int   // unused numbers
	pool     *packet.Pool
	landing  *packet.Packet // devices are read into this
	heap     heap
	trimmed  int64 // when the pool was trimmed last
	alarm    alarm
	flow     flow
	rest     rest
}

// task is work for the thread, in a stack that other goroutines push to without a lock:
// the thread must not wait for one of lower priority.
type task struct {
	work func()
	done chan struct{}
	next *task
}

// Start starts a plane without links.
func Start(options Options) (*Plane, error) {
	p := &Plane{options: options, begin: time.Now(), done: make(chan struct{}), pool: packet.NewPool(options.Memory)}
	if p.landing = p.pool.Get(packet.Largest); p.landing == nil {
		return nil, fmt.Errorf("start data plane: %d bytes of memory do not hold one packet", options.Memory)
	}
	if err := p.poll.open(); err != nil {
		return nil, fmt.Errorf("start data plane: %w", err)
	}
	p.ports = []*port{nil}
	p.total.Store(new(lateness.Histogram))
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		if options.Prepare != nil {
			options.Prepare()
		}
		p.run()
	}()
	return p, nil
}

// Stop ends the thread. Devices stay open.
func (p *Plane) Stop() error {
	// An error means that it has stopped already.
	_ = p.do(context.Background(), func() { p.stopping = true })
	<-p.done
	return p.poll.close()
}

// do has the thread call f between two packets and waits until it has. When ctx ends
// before, f may still be called.
func (p *Plane) do(ctx context.Context, f func()) error {
	t := &task{work: f, done: make(chan struct{})}
	for {
		t.next = p.tasks.Load()
		if p.tasks.CompareAndSwap(t.next, t) {
			break
		}
	}
	p.poll.wake()
	select {
	case <-t.done:
		return nil
	case <-p.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work carries out what was pushed, oldest first.
func (p *Plane) work() {
	p.poll.awake()
	var first *task
	for t := p.tasks.Swap(nil); t != nil; {
		t.next, first, t = first, t, t.next
	}
	for t := first; t != nil; t = t.next {
		t.work()
		close(t.done)
	}
}

// now is nanoseconds since the plane began.
func (p *Plane) now() int64 { return int64(time.Since(p.begin)) }

// Lateness returns how late packets were on all links since the last mark, and marks
// when asked to.
func (p *Plane) Lateness(mark bool) *lateness.Histogram {
	if mark {
		return p.total.Swap(new(lateness.Histogram))
	}
	return p.total.Load()
}

// listen makes the thread read a port.
func (p *Plane) listen(t *port) error {
	if last := len(p.free) - 1; last >= 0 {
		t.number, p.free = p.free[last], p.free[:last]
		p.ports[t.number] = t
	} else {
		t.number = len(p.ports)
		p.ports = append(p.ports, t)
	}
	return p.poll.add(t.fd, t.number)
}

// ignore undoes listen.
func (p *Plane) ignore(t *port) {
	if p.ports[t.number] != t {
		return
	}
	p.ports[t.number] = nil
	p.free = append(p.free, t.number)
	p.poll.remove(t.fd)
}

// setTimerSlack lets timers of the calling thread expire on time. By default the kernel
// may group them within 50 us.
func setTimerSlack() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
