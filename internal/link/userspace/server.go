package userspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/link/userspace/dataplane"
	"skerry/internal/link/userspace/device"
	"skerry/internal/link/userspace/shaper"
)

// server handles requests and owns the links.
type server struct {
	hello hello
	plane *dataplane.Plane
	maker *device.Maker
	stop  context.CancelFunc // ends the process after the response

	mu    sync.Mutex
	links map[string]*dataplane.Link // nil while the link is being created

	spaces namespaces
}

func (s *server) handle(ctx context.Context, r request) response {
	answer := response{ID: r.ID}
	var err error
	switch r.Op {
	case opHello:
		answer.Hello = &s.hello
	case opCreate:
		err = s.create(ctx, r.Specs)
	case opSet:
		err = s.set(ctx, r.Changes)
	case opStats:
		answer.Stats, err = s.stats(ctx, r.IDs)
	case opLateness:
		late := s.plane.Lateness(r.Reset).Summary()
		answer.Lateness = &late
	case opRemove:
		err = s.remove(ctx, r.IDs)
	case opShutdown:
		err = s.removeAll(ctx)
		s.stop()
	default:
		err = fmt.Errorf("unknown operation %q", r.Op)
	}
	answer.Error = encodeError(err)
	return answer
}

func (s *server) create(ctx context.Context, specs []link.Spec) error {
	if err := s.reserve(specs); err != nil {
		return err
	}
	links, err := s.createLinks(ctx, specs)
	if err == nil {
		s.spaces.add(specs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, spec := range specs {
		if err != nil {
			delete(s.links, spec.ID)
		} else {
			s.links[spec.ID] = links[i]
		}
	}
	return err
}

// reserve adds the IDs of all specs to the table, or none.
func (s *server) reserve(specs []link.Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, spec := range specs {
		err := spec.Validate()
		if _, taken := s.links[spec.ID]; err == nil && taken {
			err = fmt.Errorf("%w: %s", link.ErrExists, spec.ID)
		}
		if err != nil {
			for _, reserved := range specs[:i] {
				delete(s.links, reserved.ID)
			}
			return err
		}
		s.links[spec.ID] = nil
	}
	return nil
}

// createLinks creates devices and starts their links, all or none.
func (s *server) createLinks(ctx context.Context, specs []link.Spec) ([]*dataplane.Link, error) {
	wants := make([]device.Request, 0, 2*len(specs))
	for _, spec := range specs {
		bare := spec.B.Path != nil
		wants = append(wants, device.Request{End: spec.A, MTU: spec.MTU, NoLinkHeader: bare}, device.Request{End: spec.B, MTU: spec.MTU})
	}
	ports, err := s.maker.Make(ctx, wants)
	if err != nil {
		return nil, fmt.Errorf("create links: %w", err)
	}
	links := make([]*dataplane.Link, len(specs))
	for i, spec := range specs {
		links[i] = dataplane.NewLink(spec, ports[2*i], ports[2*i+1])
	}
	if err := s.plane.Add(ctx, links); err != nil {
		// When ctx has ended, the plane may still add the links. Remove works in both cases.
		err = errors.Join(err, s.plane.Remove(context.WithoutCancel(ctx), links), s.maker.Remove(ports))
		return nil, fmt.Errorf("create links: %w", err)
	}
	return links, nil
}

func (s *server) set(ctx context.Context, changes []link.Change) error {
	if len(changes) == 0 {
		return nil
	}
	ids := make([]string, len(changes))
	for i, c := range changes {
		ids[i] = c.ID
	}
	links, err := s.lookup(ids)
	if err != nil {
		return err
	}
	settings := make([]dataplane.LinkSetting, len(changes))
	for i, c := range changes {
		settings[i].Link = links[i]
		if settings[i].AB, err = compile(c.ID, withPathQueue(links[i], c.AB)); err != nil {
			return err
		}
		if settings[i].BA, err = compile(c.ID, c.BA); err != nil {
			return err
		}
	}
	return s.plane.Set(ctx, settings)
}

func compile(id string, q *link.Quality) (*shaper.Params, error) {
	if q == nil {
		return nil, nil
	}
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	return shaper.Compile(*q), nil
}

func (s *server) stats(ctx context.Context, ids []string) ([]link.Stats, error) {
	links, err := s.lookup(ids)
	if err != nil {
		return nil, err
	}
	return s.plane.Stats(ctx, links)
}

// lookup returns the named links in that order, or all links sorted by ID.
func (s *server) lookup(ids []string) ([]*dataplane.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := len(ids) == 0
	if all {
		ids = slices.Sorted(maps.Keys(s.links))
	}
	links := make([]*dataplane.Link, 0, len(ids))
	for _, id := range ids {
		l := s.links[id]
		switch {
		case l != nil:
			links = append(links, l)
		case !all: // links under construction are skipped
			return nil, fmt.Errorf("%w: %s", link.ErrUnknown, id)
		}
	}
	return links, nil
}

func (s *server) remove(ctx context.Context, ids []string) error {
	var links []*dataplane.Link
	var ports []*device.Port
	s.mu.Lock()
	for _, id := range ids {
		if l := s.links[id]; l != nil {
			delete(s.links, id)
			links = append(links, l)
			ports = append(ports, l.A, l.B)
		}
	}
	s.mu.Unlock()
	if len(links) == 0 {
		return nil
	}
	// Always complete a removal, because the links are no longer in the table.
	err := s.plane.Remove(context.WithoutCancel(ctx), links)
	return errors.Join(err, s.maker.Remove(ports))
}

func (s *server) removeAll(ctx context.Context) error {
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.links))
	s.mu.Unlock()
	return s.remove(ctx, ids)
}

// probeInterval is the interval between probes of a path to another machine. firstProbeInterval holds until
// the path is ready.
const probeInterval, firstProbeInterval = 250 * time.Millisecond, 25 * time.Millisecond

// withPathQueue returns q with the default queue computed from the latency of the link plus the delay of a
// real path: there q applies on top of the path.
func withPathQueue(l *dataplane.Link, q *link.Quality) *link.Quality {
	if q == nil || q.Bandwidth == 0 || !l.RealPath() {
		return q
	}
	whole, effective := *q, *q
	whole.Latency += l.PathDelay()
	effective.Queue = whole.QueueBytes()
	return &effective
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
