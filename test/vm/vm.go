// Package vm runs static programs, in practice test binaries, as root on a kernel of
// their own: QEMU emulates a machine that boots Debian's cloud kernel from a file
// system in memory, runs the programs and switches itself off. No hardware
// virtualisation is needed. That makes it slow, and good for correctness only.
//
// setup.sh fetches QEMU and the kernel.
package vm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Machine is a machine to boot.
type Machine struct {
	// Kernel is the directory of an unpacked kernel package: boot/vmlinuz-VERSION and
	// lib/modules/VERSION.
	Kernel string
	// Modules are loaded, with what they depend on, before the programs run.
	Modules []string
	// Init is the file of the static program of package vm/init.
	Init string
}

// Program is a program to run on a Machine.
type Program struct {
	Name string // of its file there and in messages
	File string // a static executable of this machine
	Args []string
	Env  []string
}

// ErrNoEnd means that the machine stopped before all programs had ended: the kernel panicked, or QEMU failed.
var ErrNoEnd = errors.New("the machine stopped before its programs ended")

// ExitError is the exit status of a program on the machine.
type ExitError struct {
	Program string
	Status  string
}

func (e *ExitError) Error() string { return fmt.Sprintf("%s on the machine: %s", e.Program, e.Status) }

// Run boots the machine and runs the programs one after the other, giving each line
// of the console to line. The error joins an *ExitError for each program that failed.
// When ctx is done the machine is switched off.
func (m Machine) Run(ctx context.Context, programs []Program, line func(string)) error {
	dir, err := os.MkdirTemp("", "skerry-vm-")
	if err != nil {
		return fmt.Errorf("making room for the machine: %w", err)
	}
	defer os.RemoveAll(dir)
	initrd := filepath.Join(dir, "initrd")
	if err := m.writeInitrd(initrd, programs); err != nil {
		return fmt.Errorf("making the machine's file system: %w", err)
	}
	vmlinuz, err := glob(m.Kernel, "boot/vmlinuz-*")
	if err != nil {
		return err
	}
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64",
		"-M", "pc", "-accel", "tcg,thread=multi,tb-size=512",
		"-cpu", "Nehalem", // newer ones have AVX, which is slow to emulate
		"-smp", "2", "-m", "1024", "-display", "none", "-nodefaults", "-serial", "stdio", "-no-reboot",
		"-kernel", vmlinuz, "-initrd", initrd,
		"-append", "console=ttyS0 panic=-1 quiet loglevel=3 mitigations=off")
	console, err := qemu.StdoutPipe()
	if err != nil {
		return err
	}
	var complaint strings.Builder
	qemu.Stderr = &complaint
	// QEMU must not outlive this process, whatever ends it; the kernel takes the death
	// of the starting thread for that, so this goroutine keeps it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := qemu.Start(); err != nil {
		return fmt.Errorf("starting QEMU: %w", err)
	}
	failed, ended, err := follow(console, line)
	if waited := qemu.Wait(); err == nil && waited != nil {
		err = fmt.Errorf("running QEMU: %w: %s", waited, strings.TrimSpace(complaint.String()))
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case ended < len(programs):
		return ErrNoEnd
	}
	return failed
}

// endMark begins the line in which the machine's init reports the exit of a program.
const endMark = "skerry-vm: ended: "

// follow reads the console to its end.
func follow(console io.Reader, line func(string)) (failed error, ended int, err error) {
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := strings.TrimRight(lines.Text(), "\r")
		end, ok := strings.CutPrefix(text, endMark)
		if !ok {
			line(text)
			continue
		}
		ended++
		if name, status, _ := strings.Cut(end, ": "); status != "exit status 0" {
			failed = errors.Join(failed, &ExitError{name, status})
		}
	}
	if err := lines.Err(); err != nil {
		return failed, ended, fmt.Errorf("reading the machine's console: %w", err)
	}
	return failed, ended, nil
}

// glob finds the one file that matches.
func glob(dir, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d files match %s in %s, want one", len(found), pattern, dir)
	}
	return found[0], nil
}
