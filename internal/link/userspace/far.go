package userspace

import (
	"context"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/link/userspace/dataplane"
)

// probeInterval is the interval between probes of a path to another machine. firstProbeInterval holds until
// the path is ready.
const probeInterval, firstProbeInterval = 250 * time.Millisecond, 25 * time.Millisecond

// withPathQueue returns q with the default queue computed from the latency of the link plus the delay of a
// real path: there q applies on top of the path.
func withPathQueue(l *dataplane.Link, q *link.Quality) *link.Quality {
	if q == nil || q.Bandwidth == 0 || !l.RealPath() {
		return q
	}
	whole, told := *q, *q
	whole.Latency += l.PathDelay()
	told.Queue = whole.QueueBytes()
	return &told
}

// probePaths measures the paths to other machines until ctx ends. Probes are spread over the interval,
// because in a burst each probe would wait for those before it.
func (s *server) probePaths(ctx context.Context) {
	for {
		s.mu.Lock()
		links := s.remoteLinks()
		s.mu.Unlock()
		round := probeInterval
		for _, l := range links {
			if !l.PathReady() {
				round = firstProbeInterval
			}
		}
		pause := round / time.Duration(max(1, len(links)))
		for _, l := range links {
			s.probePath(l)
			if linger.For(ctx, pause) != nil {
				return
			}
		}
		if len(links) == 0 && linger.For(ctx, round) != nil {
			return
		}
	}
}

// probePath sends a probe unless the link was removed. A link in the table has an open socket.
func (s *server) probePath(l *dataplane.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[l.ID] == l {
		s.plane.ProbePaths([]*dataplane.Link{l})
	}
}

// remoteLinks returns the links to other machines. The caller holds mu.
func (s *server) remoteLinks() (links []*dataplane.Link) {
	for _, l := range s.links {
		if l != nil && l.B.Remote {
			links = append(links, l)
		}
	}
	return links
}
