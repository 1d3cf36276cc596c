package linkbench

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"skerry/internal/event/stress"
)

// Occupy keeps every core busy with a process of its own until stop is called.
func Occupy() (stop func(), err error) {
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

// rob has a process take processors away for a share of the time, until stop is called.
func rob(command []string, share float64) (stop func(), err error) {
	c := exec.Command(command[0], append(command[1:len(command):len(command)], strconv.FormatFloat(share, 'g', -1, 64))...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a thief of processors: %w", err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a thief of processors: %w", err)
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start a thief of processors: %w", err)
	}
	stop = func() {
		_ = in.Close()
		_ = c.Process.Kill()
		_ = c.Wait() // killed: always an error
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(line) != stress.Ready {
		stop()
		return nil, fmt.Errorf("a thief of processors said %q: %w", line, errors.Join(err, errThief))
	}
	return stop, nil
}

// errThief is why nothing is measured beside stolen processors.
var errThief = errors.New("it may not have the highest real-time priority")
