package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/kernel/procfs"
)

// freezing is how often it is looked whether every process has stopped: one that was
// starting another when it was told to stop leaves that one running.
const freezing = time.Millisecond

// Freeze stops every process of the node where it is (SIGSTOP), and returns when all have
// stopped. Thaw lets them go on.
func (n *Node) Freeze(ctx context.Context) error {
	for {
		running, err := n.signal(unix.SIGSTOP)
		if err != nil {
			return fmt.Errorf("freeze %s: %w", n.spec.Name, err)
		}
		if running == 0 {
			return nil
		}
		if err := linger.For(ctx, freezing); err != nil {
			return fmt.Errorf("freeze %s: %w", n.spec.Name, err)
		}
	}
}

// Thaw lets the node's processes go on (SIGCONT).
func (n *Node) Thaw() error {
	if _, err := n.signal(unix.SIGCONT); err != nil {
		return fmt.Errorf("thaw %s: %w", n.spec.Name, err)
	}
	return nil
}

// signal sends a signal to the node's processes and counts those that may run on until
// they get it. One in the kernel that nothing interrupts (D) does not, however long that
// lasts: one that waits for a child of vfork stays there for as long as that is stopped.
func (n *Node) signal(s unix.Signal) (running int, err error) {
	pids, err := n.processes()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		st, err := procfs.ReadStat(pid)
		if err != nil {
			continue // it has ended
		}
		if !strings.ContainsRune("TDZX", rune(st.State)) {
			running++
		}
		if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
			return running, err
		}
	}
	return running, nil
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
	return n.families(), nil
}

// families are the processes that Start started, and their children.
func (n *Node) families() (pids []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var add func(pid int)
	add = func(pid int) {
		pids = append(pids, pid)
		for _, child := range procfs.ListChildren(pid) {
			add(child)
		}
	}
	for p := range n.running {
		add(p.PID())
	}
	return pids
}
