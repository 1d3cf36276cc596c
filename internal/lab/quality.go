package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"skerry/internal/link"
	"skerry/internal/topology"
)

// Links returns the links with their present qualities, in the topology's order.
func (l *Lab) Links() []Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.links.Links)
}

// Factor is what Scale was last given.
func (l *Lab) Factor() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.links.Factor
}

// Set replaces the quality of links, all at one moment. The latency given is what the
// link has then; its base becomes that latency and jitter divided by the factor in force.
func (l *Lab) Set(ctx context.Context, changes []link.Change) error {
	return l.change(ctx, func(s *linksState) ([]link.Change, error) {
		for _, c := range changes {
			i := slices.IndexFunc(s.Links, func(k Link) bool { return k.ID == c.ID })
			if i < 0 {
				return nil, fmt.Errorf("%w in lab %s: %s", ErrNoLink, l.state.Name, c.ID)
			}
			k := &s.Links[i]
			replace(&k.AB, &k.BaseAB, c.AB, s.Factor)
			replace(&k.BA, &k.BaseBA, c.BA, s.Factor)
			if err := errors.Join(k.AB.Validate(), k.BA.Validate()); err != nil {
				return nil, fmt.Errorf("link %s: %w", c.ID, err)
			}
		}
		return changes, nil
	})
}

func replace(present, base, given *link.Quality, factor float64) {
	if given == nil {
		return
	}
	*present, *base = *given, *given
	if factor > 0 {
		*base = topology.ScaleQuality(*given, 1/factor)
	}
}

// Scale makes every link's latency and jitter its base times factor, 0 or more, and the overlay that this
// process has started go by that.
func (l *Lab) Scale(ctx context.Context, factor float64) error {
	if err := l.scale(ctx, factor); err != nil || l.overlay == nil {
		return err
	}
	return l.overlay.Follow(ctx, l.overlayNet().Links)
}

func (l *Lab) scale(ctx context.Context, factor float64) error {
	return l.change(ctx, func(s *linksState) ([]link.Change, error) {
		if err := s.scale(factor); err != nil {
			return nil, err
		}
		changes := make([]link.Change, len(s.Links))
		for i, k := range s.Links {
			changes[i] = link.Change{ID: k.ID, AB: &k.AB, BA: &k.BA}
		}
		return changes, nil
	})
}

func (s *linksState) scale(factor float64) error {
	if !(factor >= 0) || math.IsInf(factor, 0) { // also refuses NaN
		return fmt.Errorf("%w: scale %g: want 0 or more", ErrInvalid, factor)
	}
	s.Factor = factor
	for i := range s.Links {
		k := &s.Links[i]
		for _, way := range []struct{ present, base *link.Quality }{{&k.AB, &k.BaseAB}, {&k.BA, &k.BaseBA}} {
			scaled := topology.ScaleQuality(*way.base, factor)
			way.present.Latency, way.present.Jitter = scaled.Latency, scaled.Jitter
		}
	}
	return nil
}

// change works out changes of links from a copy of the state, notes them and makes them.
func (l *Lab) change(ctx context.Context, work func(*linksState) ([]link.Change, error)) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.part.Lock(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.part.Unlock()) }()
	if !l.owned { // another command may have changed it
		if err := l.readNote(ctx); err != nil {
			return err
		}
	}
	next := l.links.clone()
	changes, err := work(&next)
	if err != nil {
		return err
	}
	// Noted before they are made: a command that dies between may leave the wrong note,
	// which the next change mends, but never a note that nobody wrote. That of an ephemeral
	// lab is for onlookers, who can wait: the change cannot, should the disk be slow.
	if !l.owned {
		if err := l.note(ctx, next); err != nil {
			return err
		}
	}
	if err := l.part.Set(ctx, changes); err != nil {
		if !l.owned {
			err = errors.Join(err, l.note(ctx, l.links))
		}
		return err
	}
	l.links = next
	if l.owned {
		_ = l.note(ctx, next) // it is owned by this process, which knows
	}
	return nil
}
