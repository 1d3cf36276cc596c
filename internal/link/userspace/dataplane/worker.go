package dataplane

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace/lateness"
	"skerry/internal/link/userspace/packet"
)

const (
	// sendBurst is how many packets are handed over before others have their turn.
	sendBurst = 64
	// trimEvery is how often buffers that nobody needs are let go.
	trimEvery = int64(time.Second)
	// drowsy is how long nothing may happen before a thread gives its Go processor
	// away: keeping it costs the runtime 1 % of a core, in vain attempts to preempt it.
	drowsy = int64(100 * time.Millisecond)
	// gateNap is how long a thread sleeps that finds the plane closed: what a task does takes
	// some 5 us a link.
	gateNap = int64(10 * time.Microsecond)
)

// worker is a thread of the plane.
type worker struct {
	*Plane
	number int
	poll   poller
	late   atomic.Pointer[lateness.Histogram] // of what it handed over, since the last mark
	inside atomic.Bool                        // it may touch ports, directions, pool
	vouch  atomic.Int64                       // see watch.go
	signs  atomic.Int64                       // that it goes on, see standby.go

	// What follows is the thread's own.
	landing  *packet.Packet // devices are read into this
	inbound  *train         // other machines' packets are read into this
	outbound *train         // and those for them are laid out in this
	backlog  []*port        // that had more than a burst
	trimmed  int64          // when the pool was trimmed last
	alarm    alarm
	flow     flow
	rest     rest
	standby  standby
	held     bool  // the last ports that had something were being read by another for long
	served   bool  // the last look found something to read
	first    int64 // when the packet that ended the last wait had come, as far as can be told
	came     int64 // when others had that it told of, at the latest
}

func newWorker(p *Plane, number int) (*worker, error) {
	w := &worker{Plane: p, number: number, inbound: newTrain(), outbound: newTrain()}
	w.late.Store(new(lateness.Histogram))
	if w.landing = p.pool.get(packet.Largest); w.landing == nil {
		return nil, fmt.Errorf("%d bytes of memory do not hold one packet", p.options.Memory)
	}
	return w, w.poll.open()
}

func (w *worker) run() {
	runtime.LockOSThread() // the thread ends with the goroutine
	setTimerSlack()
	if w.options.Prepare != nil {
		w.options.Prepare(w.number)
	}
	w.rest.begin(w.now())
	events := 0
	for {
		now := w.now()
		w.vouch.Store(now)
		w.enter()
		w.serve(events)
		now = w.deliver(w.now(), sendBurst)
		stop := w.stopping
		w.leave()
		if stop {
			return
		}
		now = w.pause(now)
		if w.number == 0 && now-w.trimmed > trimEvery {
			w.pool.trim()
			w.trimmed = now
		}
		events = w.wait(now)
	}
}

// enter returns once the plane is open, and keeps it so until leave.
//
// The order is what excludes a task: a thread that stores inside before it loads closed, and
// a task that stores closed before it loads inside, cannot both miss the other.
func (w *worker) enter() {
	for {
		w.inside.Store(true)
		if !w.closed.Load() {
			return
		}
		w.leave()
		for w.closed.Load() {
			sleepRaw(gateNap)
		}
	}
}

func (w *worker) leave() { w.inside.Store(false) }

// runTasks carries out what was pushed, oldest first, while every other thread is outside. The
// caller is inside, before and after.
func (w *worker) runTasks() {
	w.poll.clearWakeups()
	if w.tasks.Load() == nil {
		return
	}
	w.leave() // before it waits for the others: one of them may be at the same point
	w.closing.lock()
	w.closed.Store(true)
	for _, other := range w.workers {
		for other.inside.Load() {
			sleepRaw(gateNap)
		}
	}
	var first *task
	for t := w.tasks.Swap(nil); t != nil; {
		t.next, first, t = first, t, t.next
	}
	for t := first; t != nil; t = t.next {
		t.work()
		close(t.done)
	}
	w.closed.Store(false)
	w.closing.unlock()
	w.enter()
}

// pause rests when a real-time thread has to.
func (w *worker) pause(now int64) int64 {
	if !w.options.RealTime {
		return now
	}
	owed := w.rest.owed(now)
	if owed == 0 {
		return now
	}
	sleepRaw(owed)
	woke := w.now()
	w.rest.addIdle(now, woke)
	return woke
}

// setTimerSlack lets timers of the calling thread expire on time. By default the kernel
// may group them within 50 us.
func setTimerSlack() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
