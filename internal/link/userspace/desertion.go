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

// looking is how often an emulator without an owner looks whether its namespaces can be reached.
const looking = 2 * time.Second

// spaces are the namespaces that links end in, by the paths that led to them.
//
// An emulator without an owner is ended by whoever takes its lab down. Where the mounts of the lab's
// namespaces have gone, unmounted by hand or with their directory, nobody can enter those or end
// the lab any more, and the emulator would serve nobody, at a real-time priority, for ever: its
// devices keep the namespaces. So it ends when no path leads to any of them.
type spaces struct {
	mu sync.Mutex
	at map[string]os.FileInfo
}

func (s *spaces) know(specs []link.Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[string]os.FileInfo{}
	}
	for _, spec := range specs {
		for _, path := range []string{spec.A.Netns, spec.B.Netns} {
			if _, known := s.at[path]; known || path == netns.Own { // which is always there
				continue
			}
			if info, err := os.Stat(path); err == nil { // else it has gone already, as the others may
				s.at[path] = info
			}
		}
	}
}

// deserted tells whether there were namespaces, of which none is where it was.
func (s *spaces) deserted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, was := range s.at {
		if is, err := os.Stat(path); err == nil && os.SameFile(was, is) {
			return false
		}
	}
	return len(s.at) > 0
}

// awaitDesertion ends the process once its namespaces are out of reach, and returns when ctx ends.
func (a *agent) awaitDesertion(ctx context.Context) {
	for linger.For(ctx, looking) == nil {
		if a.spaces.deserted() {
			a.log.Error("it ends: none of its links' network namespaces is where it was")
			a.stop()
			return
		}
	}
}
