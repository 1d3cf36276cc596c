package rootless

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"skerry/internal/kernel/procfs"
)

// StartHolder starts a process that does nothing but keep this process's namespaces, and that
// outlives it. Command is what makes exe such a process.
func StartHolder(exe string, command []string, env ...string) (procfs.Process, error) {
	cmd := exec.Command(exe, command...)
	cmd.Env, cmd.Dir = append(os.Environ(), env...), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return procfs.Process{}, fmt.Errorf("start the holder of namespaces: %w", err)
	}
	p, err := procfs.FindProcess(cmd.Process.Pid)
	if err != nil {
		return p, err
	}
	// It is not waited for: this process is gone before it.
	return p, cmd.Process.Release()
}
