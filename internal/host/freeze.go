package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/procfs"
)

// freezing is how often it is looked whether every process has stopped: one that was
// starting another when it was told to stop leaves that one running.
const freezing = time.Millisecond

// Freeze stops every process of the node where it is (SIGSTOP), and returns when all have
// stopped. Thaw lets them go on.
func (n *Node) Freeze(ctx context.Context) error {
	for {
		running, err := n.signal(unix.SIGSTOP, func(state byte) bool { return state != 'T' && state != 'Z' && state != 'X' })
		if err != nil {
			return fmt.Errorf("freeze %s: %w", n.spec.Name, err)
		}
		if running == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("freeze %s: %w", n.spec.Name, ctx.Err())
		case <-time.After(freezing):
		}
	}
}

// Thaw lets the node's processes go on (SIGCONT).
func (n *Node) Thaw() error {
	if _, err := n.signal(unix.SIGCONT, func(byte) bool { return true }); err != nil {
		return fmt.Errorf("thaw %s: %w", n.spec.Name, err)
	}
	return nil
}

// signal sends a signal to those of the node's processes whose state is meant, and counts
// them.
func (n *Node) signal(s unix.Signal, meant func(state byte) bool) (int, error) {
	pids, err := n.processes()
	if err != nil {
		return 0, err
	}
	count := 0
	for _, pid := range pids {
		st, err := procfs.ReadStat(pid)
		if err != nil || !meant(st.State) {
			continue // it has ended
		}
		count++
		if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
			return count, err
		}
	}
	return count, nil
}

// processes are those of the node's control group; where there is none, those that Start
// started, and their children.
func (n *Node) processes() ([]int, error) {
	if g, err := n.controlGroup(); err != nil || g != nil {
		if err != nil {
			return nil, err
		}
		return g.Processes()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var pids []int
	var add func(pid int)
	add = func(pid int) {
		pids = append(pids, pid)
		for _, child := range procfs.Children(pid) {
			add(child)
		}
	}
	for p := range n.running {
		add(p.PID())
	}
	return pids, nil
}
