// Package wallclock sets the wall clock of one running process, and of no other: a test sees
// what a program does whose clock jumps, while time goes on as it did (the monotonic clock is
// left alone).
//
// A process reads the time with a function that the kernel maps into it, the vDSO's
// __vdso_clock_gettime. A jump to a routine of this package's is written over its beginning,
// through /proc/PID/mem as a debugger sets a breakpoint: the process gets a copy of that page.
// The routine asks the kernel and adds an offset to CLOCK_REALTIME.
package wallclock

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

	"skerry/internal/testkit"
)

// ability is what the machine lacks where it cannot be done.
const ability testkit.Ability = "wallclock"

// routine is, for amd64,
//
//	mov eax, 228 (clock_gettime); syscall
//	test edi, edi; jne done           only CLOCK_REALTIME, which is 0
//	mov rcx, [rip+6]; add [rsi], rcx  seconds
//	done: ret
//
// with the offset, 8 bytes, behind it.
var routine = []byte{
	0xb8, 0xe4, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 0x0a,
	0x48, 0x8b, 0x0d, 6, 0, 0, 0, 0x48, 0x01, 0x0e, 0xc3, 0x90, 0x90,
	0, 0, 0, 0, 0, 0, 0, 0,
}

// offsetAt is where in the routine the offset stands.
const offsetAt = 24

// Clock is one process' wall clock.
type Clock struct {
	pid    int
	offset int64 // address of it
}

// Of takes over the wall clock of a process that this one started. It skips the test where
// that cannot be done.
func Of(t testing.TB, pid int) *Clock {
	t.Helper()
	c, err := Take(pid)
	if err != nil {
		testkit.Lacks(t, ability, err)
	}
	return c
}

// Set has the process' clock be so much ahead of this one's, in whole seconds; negative:
// behind it.
func (c *Clock) Set(t testing.TB, by time.Duration) {
	t.Helper()
	if err := c.Jump(by); err != nil {
		t.Fatal(err)
	}
}

// Jump is Set for those who bear that the process may have ended.
func (c *Clock) Jump(by time.Duration) error {
	return write(c.pid, c.offset, binary.LittleEndian.AppendUint64(nil, uint64(by/time.Second)))
}

// stopped calls f while a process stands still: the instructions that are written over are
// not being run.
func stopped(pid int, f func() error) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	var err error
	for end := time.Now().Add(patience); err == nil; time.Sleep(time.Millisecond) {
		var still bool
		if still, err = stands(pid); still {
			err = f()
			break
		}
		if time.Now().After(end) {
			err = fmt.Errorf("process %d does not stop", pid)
		}
	}
	return errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
}

// patience is how long a process may take to stop.
const patience = 30 * time.Second

// stands tells whether all threads of a process are stopped.
func stands(pid int) (bool, error) {
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

// Take is Of for those who bear that it cannot be done, or that the process may have ended. It
// takes over a clock once.
func Take(pid int) (*Clock, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("%w on %s", errors.ErrUnsupported, runtime.GOARCH)
	}
	start, image, err := vdso(pid)
	if err != nil {
		return nil, err
	}
	function, err := clockGettime(image)
	if err != nil {
		return nil, err
	}
	at := int64(len(image) - 2*len(routine))
	if !bytes.Equal(image[at:], make([]byte, 2*len(routine))) {
		return nil, errors.New("there is no room in the vDSO")
	}
	const jump = 5 // bytes, of the instruction
	err = stopped(pid, func() error {
		if err := write(pid, start+at, routine); err != nil {
			return err
		}
		return write(pid, start+function, binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(at-function-jump)))
	})
	if err != nil {
		return nil, err
	}
	return &Clock{pid: pid, offset: start + at + offsetAt}, nil
}

// vdso is where a process has the vDSO, and what is in it.
func vdso(pid int) (start int64, image []byte, err error) {
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

// clockGettime is where in the vDSO the function is.
func clockGettime(image []byte) (int64, error) {
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

func write(pid int, at int64, b []byte) error {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = mem.WriteAt(b, at)
	return errors.Join(err, mem.Close())
}
