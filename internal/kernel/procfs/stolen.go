package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// StealCounter measures the processor time that the hypervisor took from the machine. A read costs some
// microseconds.
type StealCounter struct {
	file *os.File
	last time.Duration
	buf  [1 << 10]byte
}

func NewStealCounter() (*StealCounter, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("opening the machine's processor times: %w", err)
	}
	s := &StealCounter{file: f}
	s.Delta()
	return s, nil
}

// Delta returns the time stolen from all processors since the last call, in steps of 10 ms. It returns 0 if the
// counter cannot be read.
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

func (s *StealCounter) Close() { s.file.Close() }

// parseSteal returns the eighth number of "cpu user nice system idle iowait irq softirq steal ...".
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
