package userspace

import (
	"context"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/link/userspace/dataplane"
	"skerry/internal/link/userspace/shape"
)

const (
	// asking is how often the way to another machine is measured, proving how often until
	// packets of full length have crossed.
	asking, proving = 250 * time.Millisecond, 25 * time.Millisecond
	// drift is how far a way must have changed to be followed.
	drift = 10 * time.Microsecond
)

// far is the links that go on to other machines: what was asked of them, and what of their
// latency their way there takes by itself.
//
//	latency asked for = what the shaper waits + the way to the other machine
//
// Where the way is Real, what is asked for comes on top of it.
type far struct {
	mu    sync.Mutex // held while links are changed, so that the last that was asked holds
	asked map[string]asked
}

// asked is what was asked of a link.
type asked struct {
	link.Quality
	real bool
}

func (f *far) begin(specs []link.Spec) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range specs {
		if s.B.Far == nil {
			continue
		}
		if f.asked == nil {
			f.asked = map[string]asked{}
		}
		f.asked[s.ID] = asked{s.AB, s.B.Far.Real}
	}
}

func (f *far) forget(ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		delete(f.asked, id)
	}
}

// less is a quality asked for, less the way to the other machine; nil for nil. The caller holds mu.
func (f *far) less(l *dataplane.Link, q *link.Quality) *link.Quality {
	was, is := f.asked[l.ID]
	if !is || q == nil {
		return q
	}
	f.asked[l.ID] = asked{*q, was.real}
	oneWay, _ := l.Crossed()
	rest := *q
	if was.real {
		if q.Bandwidth > 0 { // a bound that an event sets: its queue goes by the whole way
			rest.Latency += oneWay
			rest.Queue, rest.Latency = rest.QueueBytes(), q.Latency
		}
		return &rest
	}
	rest.Latency = max(0, q.Latency-oneWay)
	if q.Bandwidth > 0 {
		rest.Queue = q.QueueBytes() // which goes by the latency that was asked for
	}
	l.Took(oneWay, max(0, oneWay-q.Latency))
	return &rest
}

// follow measures the ways to other machines until ctx ends, and follows their drift. Questions go
// one at a time, spread over the time between two rounds: in a burst each would wait for those
// before it, and what they wait would be taken off the links' latency.
func (s *server) follow(ctx context.Context) {
	for {
		s.mu.Lock()
		links := s.crossing()
		s.mu.Unlock()
		round := asking
		for _, l := range links {
			if !l.Proved() {
				round = proving
			}
		}
		pause := round / time.Duration(max(1, len(links)))
		for _, l := range links {
			s.ask(l)
			if linger.For(ctx, pause) != nil {
				return
			}
		}
		if len(links) == 0 && linger.For(ctx, round) != nil {
			return
		}
		// An error is the plane's end.
		_ = s.take(ctx)
	}
}

// ask asks over the way of a link, unless that is gone: a link in the table has its socket.
func (s *server) ask(l *dataplane.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[l.ID] == l {
		s.plane.Ask([]*dataplane.Link{l})
	}
}

// crossing are the links to other machines. The caller holds mu.
func (s *server) crossing() (links []*dataplane.Link) {
	for _, l := range s.links {
		if l != nil && l.B.Far {
			links = append(links, l)
		}
	}
	return links
}

// take takes the ways that have changed off the latencies asked for.
func (s *server) take(ctx context.Context) error {
	s.mu.Lock()
	links := s.crossing()
	s.mu.Unlock()
	s.far.mu.Lock()
	defer s.far.mu.Unlock()
	var settings []dataplane.Setting
	for _, l := range links {
		q, is := s.far.asked[l.ID]
		now, known := l.Crossed()
		if !is || q.real || !known || (now-l.Stats().Crossing.OneWay).Abs() < drift {
			continue
		}
		settings = append(settings, dataplane.Setting{Link: l, AB: shape.Compile(*s.far.less(l, &q.Quality))})
	}
	if len(settings) == 0 {
		return nil
	}
	return s.plane.Set(ctx, settings)
}
