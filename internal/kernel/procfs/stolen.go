package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// StealCounter tells what the hypervisor takes of the machine's processors for others. Asking costs
// some microseconds.
type StealCounter struct {
	file *os.File
	last time.Duration
	buf  [1 << 10]byte
}

// NewStealCounter begins to count.
func NewStealCounter() (*StealCounter, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("opening the machine's processor times: %w", err)
	}
	s := &StealCounter{file: f}
	s.Delta()
	return s, nil
}

// Delta is the time of all processors that was taken since the last call, counted by hundredths
// of a second. What cannot be read counts as nothing.
func (s *StealCounter) Delta() time.Duration {
	n, _ := s.file.ReadAt(s.buf[:], 0)
	total, ok := parseSteal(s.buf[:n])
	if !ok {
		return 0
	}
	taken := total - s.last
	s.last = total
	return taken
}

// Close ends counting.
func (s *StealCounter) Close() { s.file.Close() }

// parseSteal is the eighth number of the first line: "cpu user nice system idle iowait irq softirq
// steal ...".
func parseSteal(stat []byte) (time.Duration, bool) {
	const field = 8
	line, _, _ := bytes.Cut(stat, []byte{'\n'})
	fields := bytes.Fields(line)
	if len(fields) <= field {
		return 0, false
	}
	ticks, err := strconv.ParseInt(string(fields[field]), 10, 64)
	return time.Duration(ticks) * tick, err == nil
}
