// Package dataplane forwards the packets of all links on two real-time threads.
//
//	device A ─read─► direction A→B (package shaper) ─due─► write ─► device B
//	                  │                         ▲
//	                  └ its FIFO ─► queue of the directions by their first due time
//
// A thread sleeps in epoll until a device has packets or a packet is due. It keeps its Go processor while it
// sleeps (RawSyscall): after a blocking system call another thread would have to return a processor to it. Steady
// traffic allocates nothing.
//
// # Why two threads
//
// A virtual processor runs only while its host schedules it. If the host takes the processor away for 20 ms, the
// thread on it stops at any instruction, and the guest kernel cannot move it. watch.go describes how the other
// thread takes over. While a thread is stopped, the others do without what it holds:
//
//  1. the port that it reads, for a read and an offer: about 3 us per packet;
//  2. the direction that it owns, for a write: about 10 us per packet;
//  3. a spin lock, about 50 ns;
//  4. everything, while it runs a task: about 5 us per added or changed link.
//
// All other ports and directions continue. A direction has one sender at a time and a port one reader, so that
// the packets of a link keep their order:
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

	"skerry/internal/link/userspace/account"
	"skerry/internal/link/userspace/packet"
)

// ErrStopped means that the plane has ended.
var ErrStopped = errors.New("the data plane has stopped")

type Options struct {
	// Threads is the number of packet threads, default 1. Each should have its own CPU.
	Threads int
	// SpareCPU means that a processor is left for senders and receivers, so that a second thread shares the
	// work. Without it the other threads only replace one that lost its processor.
	SpareCPU bool
	// Memory bounds the buffers in flight on all links, in bytes. Excess packets are dropped and counted
	// as dropped by full queues.
	Memory int64
	// Prepare is called on each thread with its number, to set priority and processor.
	Prepare func(thread int)
	// RealTime means that the threads have real-time priority and must rest to stay below the kernel's
	// real-time limit.
	RealTime bool
}

// Plane holds the threads and their links.
type Plane struct {
	options Options
	begin   time.Time
	workers []*worker
	tasks   atomic.Pointer[task]
	done    chan struct{}

	queue queue
	pool  pool

	closing spin        // held by the thread that runs tasks
	closed  atomic.Bool // threads must stay outside

	// Changed only by tasks, while every thread is outside.
	stopping bool
	ports    []*port // by number in epoll events; 0 is the wake-up
	free     []int   // unused numbers
}

// task runs on one thread while all others are outside. Tasks form a lock-free stack: a packet thread must
// not wait for a goroutine without a processor.
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
	// An error means that the plane has stopped already.
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

// runTask runs f on a thread between two packets of all links, and waits for it. If ctx ends first, f may
// still run.
func (p *Plane) runTask(ctx context.Context, f func()) error {
	t := &task{work: f, done: make(chan struct{})}
	for {
		t.next = p.tasks.Load()
		if p.tasks.CompareAndSwap(t.next, t) {
			break
		}
	}
	for _, w := range p.workers {
		w.poll.wake() // wake all: one of them may have no processor
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

// now returns nanoseconds since the plane began.
func (p *Plane) now() int64 { return int64(time.Since(p.begin)) }

// Lateness returns the lateness of all packets since the last mark, and optionally sets a new mark.
func (p *Plane) Lateness(mark bool) *account.Histogram {
	sum := new(account.Histogram)
	for _, w := range p.workers {
		if mark {
			sum.Add(w.late.Swap(new(account.Histogram)))
		} else {
			sum.Add(w.late.Load())
		}
	}
	return sum
}

// addPort makes the threads read a port. It runs in a task.
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

// removePort undoes addPort. It runs in a task.
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

// pool is shared by all threads.
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

func (p *pool) idle() int {
	p.mu.lock()
	defer p.mu.unlock()
	return p.packets.Idle()
}
