// Command init is process 1 of package vm's machine: it creates the usual mounts, enables the loopback, executes the
// plan and powers the machine off.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/test/vm/plan"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "init: %v\n", err)
	}
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func run() error {
	for dir, kind := range map[string]string{"/dev": "devtmpfs", "/proc": "proc", "/sys": "sysfs", "/run": "tmpfs", "/tmp": "tmpfs"} {
		if err := unix.Mount(kind, dir, kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", dir, err)
		}
	}
	text, err := os.ReadFile(plan.Path)
	if err != nil {
		return err
	}
	var p plan.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("reading %s: %w", plan.Path, err)
	}
	for _, module := range p.Modules {
		if err := load(module); err != nil {
			return fmt.Errorf("loading %s: %w", module, err)
		}
	}
	if err := loopback(); err != nil {
		return fmt.Errorf("setting lo up: %w", err)
	}
	for _, program := range p.Programs {
		cmd := exec.Command(program.Path, program.Args...)
		cmd.Env = append(os.Environ(), program.Env...)
		cmd.Dir = "/tmp"
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		status := "exit status 0"
		if err := cmd.Run(); err != nil {
			status = err.Error()
		}
		// A program may have ended in the middle of a line.
		fmt.Printf("\n%s%s: %s\n", program.EndMark, program.Name, status)
	}
	return nil
}

// loopback enables the machine's own network.
func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

func load(module string) error {
	file, err := os.Open(module)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.FinitModule(int(file.Fd()), "", 0)
}
