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

// wallClockAbility is missing if the wall clock of a process cannot be set.
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

// offsetAt is the position of the offset in the routine.
const offsetAt = 24

// WallClock is the wall clock of one running process. A test sets it to let the clock of that process jump. The monotonic
// clock and all other processes are not affected.
//
// A process reads the time with __vdso_clock_gettime, a function of the vDSO that the kernel maps into it. The test
// overwrites its first instruction with a jump to clockRoutine, through /proc/PID/mem as a debugger sets a breakpoint, so
// that the process gets a copy of the page. The routine calls the kernel and adds an offset to CLOCK_REALTIME.
type WallClock struct {
	pid    int
	offset int64 // address of the offset
}

// AttachClock takes control of the wall clock of a child process. It skips the test if that is not possible.
func AttachClock(t testing.TB, pid int) *WallClock {
	t.Helper()
	c, err := OpenClock(pid)
	if err != nil {
		Lacks(t, wallClockAbility, err)
	}
	return c
}

// Set moves the clock ahead of this process's clock by whole seconds, or behind it if by is negative.
func (c *WallClock) Set(t testing.TB, by time.Duration) {
	t.Helper()
	if err := c.TrySet(by); err != nil {
		t.Fatal(err)
	}
}

// TrySet is Set with an error, for a process that may have ended.
func (c *WallClock) TrySet(by time.Duration) error {
	return writeMemory(c.pid, c.offset, binary.LittleEndian.AppendUint64(nil, uint64(by/time.Second)))
}

// whileStopped calls f while the process is stopped, so that no thread executes the overwritten instructions.
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

// stopTimeout bounds the wait for a process to stop.
const stopTimeout = 30 * time.Second

// isStopped reports whether all threads of a process are stopped.
func isStopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false, errors.Join(err, fmt.Errorf("process %d has ended", pid))
	}
	for _, t := range threads {
		text, err := os.ReadFile(t)
		if err != nil {
			return false, nil // the thread has just ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		if !strings.HasPrefix(after, "T") {
			return false, nil
		}
	}
	return true, nil
}

// OpenClock is AttachClock with an error, for a process that may have ended. Call it once for each process.
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
		return nil, errors.New("the vDSO has no free space")
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

// readVDSO returns the address and the content of a process's vDSO.
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

// findClockGettime returns the offset of __vdso_clock_gettime in the vDSO.
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
