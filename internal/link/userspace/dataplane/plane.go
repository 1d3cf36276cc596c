// Package dataplane moves the packets of all links, on a thread for each of two processors.
//
//	device A ─read─► direction A→B (package shape) ─due─► write ─► device B
//	                  │                         ▲
//	                  └ its FIFO ─► queue of the directions by their first due time
//
// A thread sleeps in epoll until a device has packets or one is due. It keeps its Go processor
// while it sleeps (RawSyscall), because after a blocking system call it would have to be given
// one by another thread. Nothing is allocated while traffic is steady.
//
// # Why two threads
//
// A virtual processor runs only while its host lets it. When the host takes one away for 20 ms,
// the thread on it stands still wherever it is, and the kernel below cannot move it. What the
// other thread does then is argued in watch.go. What a thread holds while it stands still, the
// others have to do without:
//
//  1. the port that it is reading, for a read and an offer: some 3 us a packet;
//  2. the direction that it is sending for, for a write: some 10 us a packet;
//  3. a spin lock, some 50 ns;
//  4. everything, while it does a task: some 5 us a link that is added or changed.
//
// All other ports and directions go on. A direction has one sender at a time and a port one
// reader, so that packets of a link keep their order whichever threads move them:
//
//	port ──reading──► shaper ──mu──► FIFO ──active──► device
//	     one thread          short         one thread, or the queue
package dataplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/link/userspace/lateness"
	"skerry/internal/link/userspace/packet"
)

// ErrStopped is returned by what needs a plane that has ended.
var ErrStopped = errors.New("the data plane has stopped")

// Options of a plane.
type Options struct {
	// Threads that move packets, 1 when not given. Each should run on a processor of its own.
	Threads int
	// Helps says that there are processors that nobody needs: a second thread carries a part of what
	// the first cannot. Without it the others only stand in for a thread whose processor is away.
	SpareCPU bool
	// Memory bounds the bytes of buffers of packets in flight on all links. What
	// exceeds it is dropped and counted with the full queues.
	Memory int64
	// Prepare is called on each thread before it begins, with its number, to give it its
	// priority and processor.
	Prepare func(thread int)
	// RealTime says that the threads run at a real-time priority and must rest to
	// stay below the kernel's limit on that.
	RealTime bool
}

// Plane is the threads and the links they serve.
type Plane struct {
	options Options
	begin   time.Time
	workers []*worker
	tasks   atomic.Pointer[task]
	done    chan struct{}

	queue queue
	pool  pool

	closing spin        // held by the thread that does tasks
	closed  atomic.Bool // threads stay outside

	// What follows is changed by tasks alone, while every thread is outside.
	stopping bool
	ports    []*port // by their number in epoll events; 0 is the wake-up
	free     []int   // unused numbers
}

// task is work for a thread while all others are outside, in a stack that other goroutines
// push to without a lock: a thread must not wait for one that has no processor.
type task struct {
	work func()
	done chan struct{}
	next *task
}

// Start starts a plane without links.
func Start(options Options) (*Plane, error) {
	options.Threads = max(1, options.Threads)
	p := &Plane{options: options, begin: time.Now(), done: make(chan struct{}), ports: []*port{nil}}
	p.pool.packets = packet.NewPool(options.Memory)
	p.queue.next.Store(never)
	for i := range options.Threads {
		w, err := newWorker(p, i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start data plane: %w", err), p.closePollers())
		}
		p.workers = append(p.workers, w)
	}
	var running sync.WaitGroup
	for _, w := range p.workers {
		running.Go(w.run)
	}
	go func() {
		running.Wait()
		close(p.done)
	}()
	return p, nil
}

// Stop ends the threads. Devices stay open.
func (p *Plane) Stop() error {
	// An error means that it has stopped already.
	_ = p.runTask(context.Background(), func() {
		p.stopping = true
		for _, w := range p.workers {
			w.poll.wake()
		}
	})
	<-p.done
	return p.closePollers()
}

func (p *Plane) closePollers() error {
	var errs []error
	for _, w := range p.workers {
		errs = append(errs, w.poll.close())
	}
	return errors.Join(errs...)
}

// runTask has a thread call f between two packets, of all links, and waits until it has. When ctx
// ends before, f may still be called.
func (p *Plane) runTask(ctx context.Context, f func()) error {
	t := &task{work: f, done: make(chan struct{})}
	for {
		t.next = p.tasks.Load()
		if p.tasks.CompareAndSwap(t.next, t) {
			break
		}
	}
	for _, w := range p.workers {
		w.poll.wake() // all: one of them may have no processor now
	}
	select {
	case <-t.done:
		return nil
	case <-p.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// now is nanoseconds since the plane began.
func (p *Plane) now() int64 { return int64(time.Since(p.begin)) }

// Lateness returns how late packets were on all links since the last mark, and marks
// when asked to.
func (p *Plane) Lateness(mark bool) *lateness.Histogram {
	sum := new(lateness.Histogram)
	for _, w := range p.workers {
		if mark {
			sum.Add(w.late.Swap(new(lateness.Histogram)))
		} else {
			sum.Add(w.late.Load())
		}
	}
	return sum
}

// addPort makes the threads read a port. It is called by tasks.
func (p *Plane) addPort(t *port) error {
	if last := len(p.free) - 1; last >= 0 {
		t.number, p.free = p.free[last], p.free[:last]
		p.ports[t.number] = t
	} else {
		t.number = len(p.ports)
		p.ports = append(p.ports, t)
	}
	for _, w := range p.workers {
		if err := w.poll.add(t.fd, t.number); err != nil {
			return err
		}
	}
	return nil
}

// removePort undoes listen. It is called by tasks.
func (p *Plane) removePort(t *port) {
	if p.ports[t.number] != t {
		return
	}
	p.ports[t.number] = nil
	p.free = append(p.free, t.number)
	for _, w := range p.workers {
		w.poll.remove(t.fd)
	}
}

// pool is the packets that all threads share.
type pool struct {
	mu      spin
	packets *packet.Pool
}

func (p *pool) get(size int) *packet.Packet {
	p.mu.lock()
	defer p.mu.unlock()
	return p.packets.Get(size)
}

func (p *pool) put(k *packet.Packet) {
	p.mu.lock()
	p.packets.Put(k)
	p.mu.unlock()
}

func (p *pool) trim() {
	p.mu.lock()
	p.packets.Trim()
	p.mu.unlock()
}

// idle is how many packets nobody uses.
func (p *pool) idle() int {
	p.mu.lock()
	defer p.mu.unlock()
	return p.packets.Idle()
}
