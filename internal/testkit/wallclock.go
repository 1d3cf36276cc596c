// Package wallclock sets the wall clock of one running process, and of no other: a test sees
// what a program does whose clock jumps, while time goes on as it did (the monotonic clock is
// left alone).
//
// A process reads the time with a function that the kernel maps into it, the vDSO's
// __vdso_clock_gettime. A jump to a routine of this package's is written over its beginning,
// through /proc/PID/mem as a debugger sets a breakpoint: the process gets a copy of that page.
// The routine asks the kernel and adds an offset to CLOCK_REALTIME.
package testkit

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wallClockAbility is what the machine lacks where it cannot be done.
const wallClockAbility Ability = "wallclock"

// clockRoutine is, for amd64,
//
//	mov eax, 228 (clock_gettime); syscall
//	test edi, edi; jne done           only CLOCK_REALTIME, which is 0
//	mov rcx, [rip+6]; add [rsi], rcx  seconds
//	done: ret
//
// with the offset, 8 bytes, behind it.
var clockRoutine = []byte{
	0xb8, 0xe4, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 0x0a,
	0x48, 0x8b, 0x0d, 6, 0, 0, 0, 0x48, 0x01, 0x0e, 0xc3, 0x90, 0x90,
	0, 0, 0, 0, 0, 0, 0, 0,
}

// offsetAt is where in the routine the offset stands.
const offsetAt = 24

// WallClock is one process' wall clock.
type WallClock struct {
	pid    int
	offset int64 // address of it
}

// AttachClock takes over the wall clock of a process that this one started. It skips the test where
// that cannot be done.
func AttachClock(t testing.TB, pid int) *WallClock {
	t.Helper()
	c, err := OpenClock(pid)
	if err != nil {
		Lacks(t, wallClockAbility, err)
	}
	return c
}

// Set has the process' clock be so much ahead of this one's, in whole seconds; negative:
// behind it.
func (c *WallClock) Set(t testing.TB, by time.Duration) {
	t.Helper()
	if err := c.TrySet(by); err != nil {
		t.Fatal(err)
	}
}

// TrySet is Set for those who bear that the process may have ended.
func (c *WallClock) TrySet(by time.Duration) error {
	return writeMemory(c.pid, c.offset, binary.LittleEndian.AppendUint64(nil, uint64(by/time.Second)))
}

// whileStopped calls f while a process stands still: the instructions that are written over are
// not being run.
func whileStopped(pid int, f func() error) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	var err error
	for end := time.Now().Add(stopTimeout); err == nil; time.Sleep(time.Millisecond) {
		var still bool
		if still, err = isStopped(pid); still {
			err = f()
			break
		}
		if time.Now().After(end) {
			err = fmt.Errorf("process %d does not stop", pid)
		}
	}
	return errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
}

// stopTimeout is how long a process may take to stop.
const stopTimeout = 30 * time.Second

// isStopped tells whether all threads of a process are stopped.
func isStopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false, errors.Join(err, fmt.Errorf("process %d has ended", pid))
	}
	for _, t := range threads {
		text, err := os.ReadFile(t)
		if err != nil {
			return false, nil // a thread that has just ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		if !strings.HasPrefix(after, "T") {
			return false, nil
		}
	}
	return true, nil
}

// OpenClock is Of for those who bear that it cannot be done, or that the process may have ended. It
// takes over a clock once.
func OpenClock(pid int) (*WallClock, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("%w on %s", errors.ErrUnsupported, runtime.GOARCH)
	}
	start, image, err := readVDSO(pid)
	if err != nil {
		return nil, err
	}
	function, err := findClockGettime(image)
	if err != nil {
		return nil, err
	}
	at := int64(len(image) - 2*len(clockRoutine))
	if !bytes.Equal(image[at:], make([]byte, 2*len(clockRoutine))) {
		return nil, errors.New("there is no room in the vDSO")
	}
	const jump = 5 // bytes, of the instruction
	err = whileStopped(pid, func() error {
		if err := writeMemory(pid, start+at, clockRoutine); err != nil {
			return err
		}
		return writeMemory(pid, start+function, binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(at-function-jump)))
	})
	if err != nil {
		return nil, err
	}
	return &WallClock{pid: pid, offset: start + at + offsetAt}, nil
}

// readVDSO is where a process has the vDSO, and what is in it.
func readVDSO(pid int) (start int64, image []byte, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, nil, err
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if !strings.HasSuffix(lines.Text(), "[vdso]") {
			continue
		}
		var end int64
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &start, &end); err != nil {
			return 0, nil, err
		}
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err != nil {
			return 0, nil, err
		}
		defer mem.Close()
		image = make([]byte, end-start)
		_, err = mem.ReadAt(image, start)
		return start, image, err
	}
	return 0, nil, errors.New("the process has no vDSO")
}

// findClockGettime is where in the vDSO the function is.
func findClockGettime(image []byte) (int64, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return int64(s.Value), nil
		}
	}
	return 0, errors.New("the vDSO has no __vdso_clock_gettime")
}

func writeMemory(pid int, at int64, b []byte) error {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = mem.WriteAt(b, at)
	return errors.Join(err, mem.Close())
}
