// Package testhost creates nodes for tests, and finds the leftovers of labs on this machine.
package testhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry/internal/machine/host"
)

// node is a node whose processes end with the test.
type node struct {
	host.NamespaceHost
	t testing.TB
}

// nets counts the sets of nodes of this process.
var nets atomic.Uint32

// Loopback creates n nodes n1 to nN at the sites s1 to sN on loopback. Every node of every test has its own address.
// Processes that still run when the test ends are killed.
func Loopback(t testing.TB, n int) []host.Host {
	t.Helper()
	net := nets.Add(1)
	pid := os.Getpid()
	hosts := make([]host.Host, n)
	for i := range hosts {
		addr := fmt.Sprintf("127.%d.%d.%d", 1+(pid>>3)%126, (pid&7)<<5|int(net&31), i+1)
		h, err := host.NewLoopback(fmt.Sprintf("n%d", i+1), fmt.Sprintf("s%d", i+1), addr, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		// Servers that refuse root run as another user, who must get there.
		if err := os.Chmod(filepath.Dir(h.Dir()), 0o755); err != nil {
			t.Fatal(err)
		}
		hosts[i] = &node{h, t}
	}
	return hosts
}

// Usage returns zero, because loopback nodes share the resources of the machine.
func (h *node) Usage() (host.Usage, error) { return host.Usage{}, nil }
func (h *node) ClockOffset() time.Duration { return 0 }

// Start runs a program.
func (h *node) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := h.NamespaceHost.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	h.t.Cleanup(func() {
		// What a start script leaves behind is in the script's group.
		if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			h.t.Errorf("ending what %s left on %s: %v", c.Name, h.Name(), err)
		}
		if err := p.Kill(); err != nil {
			h.t.Errorf("ending %s on %s: %v", c.Name, h.Name(), err)
		}
	})
	return p, nil
}
