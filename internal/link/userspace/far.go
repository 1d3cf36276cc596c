package userspace

import (
	"context"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/link/userspace/dataplane"
)

// probeInterval is how often the way to another machine is measured, proving how often until packets of full
// length have crossed.
const probeInterval, firstProbeInterval = 250 * time.Millisecond, 25 * time.Millisecond

// withPathQueue is a quality as the shaper of a link is told; nil for nil. Where the way to another machine is real, what is
// asked for comes on top of it, and the queue of a bandwidth goes by both.
func withPathQueue(l *dataplane.Link, q *link.Quality) *link.Quality {
	if q == nil || q.Bandwidth == 0 || !l.RealPath() {
		return q
	}
	whole, told := *q, *q
	whole.Latency += l.PathDelay()
	told.Queue = whole.QueueBytes()
	return &told
}

// probePaths measures the ways to other machines until ctx ends, and follows their drift. Questions go
// one at a time, spread over the time between two rounds: in a burst each would wait for those
// before it, which is no part of the way.
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

// probePath asks over the way of a link, unless that is gone: a link in the table has its socket.
func (s *server) probePath(l *dataplane.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[l.ID] == l {
		s.plane.ProbePaths([]*dataplane.Link{l})
	}
}

// remoteLinks are the links to other machines. The caller holds mu.
func (s *server) remoteLinks() (links []*dataplane.Link) {
	for _, l := range s.links {
		if l != nil && l.B.Remote {
			links = append(links, l)
		}
	}
	return links
}
