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

// namespacePoll is how often an emulator without an owner looks whether its namespaces can be reached.
const namespacePoll = 2 * time.Second

// namespaces are the namespaces that links end in, by the paths that led to them.
//
// An emulator without an owner is ended by whoever takes its lab down. Where the mounts of the lab's
// namespaces have gone, unmounted by hand or with their directory, nobody can enter those or end
// the lab any more, and the emulator would serve nobody, at a real-time priority, for ever: its
// devices keep the namespaces. So it ends when no path leads to any of them.
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
			if _, known := s.seen[path]; known || path == netns.OwnPath { // which is always there
				continue
			}
			if info, err := os.Stat(path); err == nil { // else it has gone already, as the others may
				s.seen[path] = info
			}
		}
	}
}

// unreachable tells whether there were namespaces, of which none is where it was.
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

// exitWhenUnreachable ends the process once its namespaces are out of reach, and returns when ctx ends.
func (a *agent) exitWhenUnreachable(ctx context.Context) {
	for linger.For(ctx, namespacePoll) == nil {
		if a.spaces.unreachable() {
			a.log.Error("it ends: none of its links' network namespaces is where it was")
			a.stop()
			return
		}
	}
}
