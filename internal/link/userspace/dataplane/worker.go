package dataplane

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace/account"
	"skerry/internal/link/userspace/packet"
)

const (
	// sendBurst bounds the packets sent before ports are served.
	sendBurst = 64
	// trimEvery is the interval at which unused buffers are released.
	trimEvery = int64(time.Second)
	// drowsy is the idle time after which a thread releases its Go processor. Keeping it costs the runtime
	// 1 % of a core in failed preemptions.
	drowsy = int64(100 * time.Millisecond)
	// gateNap is the sleep of a thread while a task runs, which takes about 5 us per link.
	gateNap = int64(10 * time.Microsecond)
)

// worker is a packet thread.
type worker struct {
	*Plane
	number int
	poll   poller
	late   atomic.Pointer[account.Histogram] // lateness of its packets since the last mark
	inside atomic.Bool                       // it may touch ports, directions and pool
	vouch  atomic.Int64                      // time of its next check of the queue, see watch.go
	signs  atomic.Int64                      // signs of progress, see pacing.go

	// Owned by the thread.
	landing  *packet.Packet // devices are read into this
	inbound  *train         // packets of other machines are read into this
	outbound *train         // packets for other machines are built in this
	backlog  []*port        // ports with more than a burst
	trimmed  int64          // time of the last trim
	alarm    alarm
	flow     flow
	rest     rest
	standby  standby
	held     bool  // another thread was reading the last ports for long
	served   bool  // the last events brought something to read
	first    int64 // estimated arrival of the packet that ended the last wait
	came     int64 // latest arrival of the other packets of that wait
}

func newWorker(p *Plane, number int) (*worker, error) {
	w := &worker{Plane: p, number: number, inbound: newTrain(), outbound: newTrain()}
	w.late.Store(new(account.Histogram))
	if w.landing = p.pool.get(packet.Largest); w.landing == nil {
		return nil, fmt.Errorf("memory limit of %d bytes is below one packet", p.options.Memory)
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

// enter waits until the plane is open and keeps it open until leave.
//
// The order excludes tasks: a thread stores inside before it loads closed, and a task stores closed before it
// loads inside. They cannot both miss the other.
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

// runTasks runs the pending tasks, oldest first, while every other thread is outside. The caller is inside
// before and after.
func (w *worker) runTasks() {
	w.poll.clearWakeups()
	if w.tasks.Load() == nil {
		return
	}
	w.leave() // before it waits: another thread may be at the same point
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

// pause rests if a real-time thread has to.
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

// setTimerSlack disables the grouping of timers within 50 us for the calling thread.
func setTimerSlack() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
