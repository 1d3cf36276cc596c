package linkbench

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// occupy keeps every core busy with a process of its own until stop is called.
func occupy() (stop func(), err error) {
	var loops []*exec.Cmd
	stop = func() {
		for _, c := range loops {
			_ = c.Process.Kill()
			_ = c.Wait() // killed: always an error
		}
	}
	for range runtime.NumCPU() {
		c := exec.Command("/bin/sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("start a busy loop: %w", err)
		}
		loops = append(loops, c)
	}
	return stop, nil
}
