package userspace

import (
	"context"
	"os"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/kernel/netns"
	"skerry/internal/link"
)

// namespacePoll is the interval at which an emulator without an owner checks its namespaces.
const namespacePoll = 2 * time.Second

// namespaces are the namespaces in which links end, by path.
//
// An emulator without an owner is ended by `lab down`. If the mounts of the lab's namespaces were removed by
// hand, no command can enter the namespaces or end the lab. The emulator would then run forever at a real-time
// priority, because its devices keep the namespaces alive. So it ends when no path leads to its namespace.
type namespaces struct {
	mu   sync.Mutex
	seen map[string]os.FileInfo
}

func (s *namespaces) add(specs []link.Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]os.FileInfo{}
	}
	for _, spec := range specs {
		for _, path := range []string{spec.A.Netns, spec.B.Netns} {
			if _, known := s.seen[path]; known || path == netns.OwnPath { // always reachable
				continue
			}
			if info, err := os.Stat(path); err == nil { // the path may already be gone
				s.seen[path] = info
			}
		}
	}
}

// unreachable reports whether namespaces were added and none of them can be reached by its path.
func (s *namespaces) unreachable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, was := range s.seen {
		if is, err := os.Stat(path); err == nil && os.SameFile(was, is) {
			return false
		}
	}
	return len(s.seen) > 0
}

// exitWhenUnreachable ends the process once no namespace can be reached. It returns when ctx ends.
func (a *agent) exitWhenUnreachable(ctx context.Context) {
	for linger.For(ctx, namespacePoll) == nil {
		if a.spaces.unreachable() {
			a.log.Error("it ends: none of its links' network namespaces is where it was")
			a.stop()
			return
		}
	}
}
