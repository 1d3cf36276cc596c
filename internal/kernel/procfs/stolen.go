package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Stolen tells what the hypervisor takes of the machine's processors for others. Asking costs
// some microseconds.
type Stolen struct {
	file *os.File
	last time.Duration
	buf  [1 << 10]byte
}

// NewStolen begins to count.
func NewStolen() (*Stolen, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("opening the machine's processor times: %w", err)
	}
	s := &Stolen{file: f}
	s.Since()
	return s, nil
}

// Since is the time of all processors that was taken since the last call, counted by hundredths
// of a second. What cannot be read counts as nothing.
func (s *Stolen) Since() time.Duration {
	n, _ := s.file.ReadAt(s.buf[:], 0)
	total, ok := stolen(s.buf[:n])
	if !ok {
		return 0
	}
	taken := total - s.last
	s.last = total
	return taken
}

// Close ends counting.
func (s *Stolen) Close() { s.file.Close() }

// stolen is the eighth number of the first line: "cpu user nice system idle iowait irq softirq
// steal ...".
func stolen(stat []byte) (time.Duration, bool) {
	const field = 8
	line, _, _ := bytes.Cut(stat, []byte{'\n'})
	fields := bytes.Fields(line)
	if len(fields) <= field {
		return 0, false
	}
	ticks, err := strconv.ParseInt(string(fields[field]), 10, 64)
	return time.Duration(ticks) * tick, err == nil
}
