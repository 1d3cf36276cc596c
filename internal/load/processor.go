package load

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"skerry/internal/kernel/procfs"
)

// stealMeter tells what this process could not have of the processors.
type stealMeter struct {
	stolen  *procfs.Stolen
	threads map[string]*threadWait // by ID
	samples int
	buf     [1 << 12]byte
}

// threadWait is how long a thread has been ready to run without running.
type threadWait struct {
	file *os.File
	ns   int64
}

// threadScanPeriod is every how many looks threads that began since are found.
const threadScanPeriod = 50

func newStealMeter() (*stealMeter, error) {
	stolen, err := procfs.NewStolen()
	if err != nil {
		return nil, err
	}
	p := &stealMeter{stolen: stolen, threads: map[string]*threadWait{}}
	p.findThreads()
	p.measure()
	return p, nil
}

// findThreads finds new threads. On a kernel that does not count waits (CONFIG_SCHED_INFO) there is
// nothing to be found, and steal alone marks.
func (p *stealMeter) findThreads() {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, e := range entries {
		if p.threads[e.Name()] != nil {
			continue
		}
		f, err := os.Open("/proc/self/task/" + e.Name() + "/schedstat")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			w := &threadWait{file: f}
			w.ns, _ = w.read(p.buf[:])
			p.threads[e.Name()] = w
		}
	}
}

// measure is, since the last call, the processor time that the hypervisor took for others, and
// the longest that one thread waited. What cannot be read counts as nothing.
func (p *stealMeter) measure() (stolen, waited time.Duration) {
	stolen = p.stolen.Since()
	if p.samples%threadScanPeriod == 0 {
		p.findThreads()
	}
	p.samples++
	for id, w := range p.threads {
		ns, ok := w.read(p.buf[:])
		if !ok { // it has ended
			w.file.Close()
			delete(p.threads, id)
			continue
		}
		waited, w.ns = max(waited, time.Duration(ns-w.ns)), ns
	}
	return stolen, waited
}

// read is the second number of "running waiting slices".
func (w *threadWait) read(buf []byte) (ns int64, ok bool) {
	n, err := w.file.ReadAt(buf, 0)
	if n == 0 && err != nil {
		return 0, false
	}
	fields := bytes.Fields(buf[:n])
	if len(fields) < 2 {
		return 0, false
	}
	ns, err = strconv.ParseInt(string(fields[1]), 10, 64)
	return ns, err == nil
}

func (p *stealMeter) close() {
	for _, w := range p.threads {
		w.file.Close()
	}
	p.stolen.Close()
}
