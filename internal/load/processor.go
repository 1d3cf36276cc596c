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

// processor tells what this process could not have of the processors.
type processor struct {
	stolen  *procfs.Stolen
	threads map[string]*waiting // by ID
	looks   int
	buf     [1 << 12]byte
}

// waiting is how long a thread has been ready to run without running.
type waiting struct {
	file *os.File
	ns   int64
}

// newThreads is every how many looks threads that began since are found.
const newThreads = 50

func newProcessor() (*processor, error) {
	stolen, err := procfs.NewStolen()
	if err != nil {
		return nil, err
	}
	p := &processor{stolen: stolen, threads: map[string]*waiting{}}
	p.find()
	p.since()
	return p, nil
}

// find finds new threads. On a kernel that does not count waits (CONFIG_SCHED_INFO) there is
// nothing to be found, and steal alone marks.
func (p *processor) find() {
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
			w := &waiting{file: f}
			w.ns, _ = w.read(p.buf[:])
			p.threads[e.Name()] = w
		}
	}
}

// since is, since the last call, the processor time that the hypervisor took for others, and
// the longest that one thread waited. What cannot be read counts as nothing.
func (p *processor) since() (stolen, waited time.Duration) {
	stolen = p.stolen.Since()
	if p.looks%newThreads == 0 {
		p.find()
	}
	p.looks++
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
func (w *waiting) read(buf []byte) (ns int64, ok bool) {
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

func (p *processor) close() {
	for _, w := range p.threads {
		w.file.Close()
	}
	p.stolen.Close()
}
