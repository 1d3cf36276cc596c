package hydrabench

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// meter counts what a measurement takes of the workers' process, and how fast the machine is
// meanwhile: what makes operations dearer is then told apart. More calls of the system for each
// are messages that are no longer sent together; a slower pace with as many calls is the
// machine's - another one on the same processors, or their clock.
type meter struct {
	began counts
	stop  chan struct{}
	paces chan []time.Duration
}

// counts are a process' counters.
type counts struct {
	cpu           time.Duration
	reads, writes int64 // calls of the system
	switches      int64 // of threads
}

// paceEvery is how often the pace is measured, paceWork how many steps its work has: a quarter
// of a millisecond, which takes less than a hundredth of one core.
const (
	paceEvery = 50 * time.Millisecond
	paceWork  = 200_000
)

func startMeter() *meter {
	m := &meter{began: count(), stop: make(chan struct{}), paces: make(chan []time.Duration)}
	go m.pace()
	return m
}

// pace measures the same work again and again, by the processor's time that it takes, until
// the meter stops.
func (m *meter) pace() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	var all []time.Duration
	for x := uint64(1); ; {
		select {
		case <-m.stop:
			m.paces <- all
			return
		case <-tick.C:
		}
		began := threadTime()
		for range paceWork { // xorshift64
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		if took := threadTime() - began; x != 0 { // it never is: the work is not left out
			all = append(all, took)
		}
	}
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil { // it does not fail
		return 0
	}
	return time.Duration(t.Nano())
}

// end writes into a load what its operations took.
func (m *meter) end(l *Load) {
	now := count()
	close(m.stop)
	if paces := <-m.paces; len(paces) > 0 {
		slices.Sort(paces)
		l.Pace = float64(paces[len(paces)/2].Nanoseconds()) / 1000
	}
	if l.OK == 0 {
		return
	}
	each := func(n int64) float64 { return float64(n) / float64(l.OK) }
	l.ClientCPU = each((now.cpu - m.began.cpu).Microseconds())
	l.Reads, l.Writes, l.Switches = each(now.reads-m.began.reads), each(now.writes-m.began.writes), each(now.switches-m.began.switches)
}

// count reads the counters; those of calls stay 0 where the kernel does not keep them.
func count() (c counts) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err == nil { // it does not fail
		c.cpu, c.switches = time.Duration(r.Utime.Nano()+r.Stime.Nano()), r.Nvcsw+r.Nivcsw
	}
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "syscr: %d", &c.reads) // the other lines are not of this form
		_, _ = fmt.Sscanf(line, "syscw: %d", &c.writes)
	}
	return c
}
