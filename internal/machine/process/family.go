package process

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry/internal/kernel/procfs"
)

const (
	// childPoll is how often it is asked whether processes that were killed, and are nobody's
	// children here, have gone.
	childPoll = 5 * time.Millisecond
	// childPatience bounds that: one that the kernel does not let go of stays.
	childPatience = 20 * time.Second
)

// KillFamily is Kill for the process and for its children, which may lead sessions of their
// own. They are listed before it is killed, since they are nobody's children afterwards.
func (p *Process) KillFamily() error {
	select {
	case <-p.done:
		return nil // its ID may be another's
	default:
	}
	var children []procfs.Process
	for _, pid := range procfs.ListChildren(p.PID()) {
		if c, err := procfs.FindProcess(pid); err == nil { // else it has ended
			children = append(children, c)
		}
	}
	err := p.Kill()
	for _, c := range children {
		if e := c.Kill(); e != nil {
			err = errors.Join(err, fmt.Errorf("killing a child of %s: %w", p.name, e))
		}
	}
	for began := time.Now(); slices.ContainsFunc(children, procfs.Process.Alive) && time.Since(began) < childPatience; {
		time.Sleep(childPoll)
	}
	return err
}
