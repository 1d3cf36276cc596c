package rootless

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"skerry/internal/procfs"
)

// Hold starts a process that does nothing but keep this process's namespaces.
func Hold(exe string, env []string, attr *syscall.SysProcAttr) (procfs.Process, error) {
	cmd := exec.Command(exe, "agent", "hold")
	cmd.Env, cmd.Dir, cmd.SysProcAttr = append(os.Environ(), env...), "/", attr
	if err := cmd.Start(); err != nil {
		return procfs.Process{}, fmt.Errorf("start the holder of namespaces: %w", err)
	}
	p, err := procfs.Of(cmd.Process.Pid)
	if err != nil {
		return procfs.Process{}, err
	}
	// It outlives this process, whose parent will wait for it.
	return p, cmd.Process.Release()
}
