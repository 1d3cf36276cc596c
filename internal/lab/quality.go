package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"skerry/internal/link"
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
// link has then; its base becomes that latency divided by the factor in force.
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
		base.Latency = scaled(given.Latency, 1/factor)
	}
}

// Scale makes every link's latency its base times factor, 0 or more.
func (l *Lab) Scale(ctx context.Context, factor float64) error {
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
		k.AB.Latency = scaled(k.BaseAB.Latency, factor)
		k.BA.Latency = scaled(k.BaseBA.Latency, factor)
	}
	return nil
}

func scaled(d time.Duration, factor float64) time.Duration {
	return time.Duration(math.Round(float64(d) * factor))
}

// change works out changes of links from a copy of the state, notes them and makes them.
func (l *Lab) change(ctx context.Context, work func(*linksState) ([]link.Change, error)) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner == nil {
		unlock, err := l.borrow(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	next := l.links.clone()
	changes, err := work(&next)
	if err != nil {
		return err
	}
	// Noted before they are made: a command that dies between may leave the wrong note,
	// which the next change mends, but never a note that nobody wrote. That of an ephemeral
	// lab is for onlookers, who can wait: the change cannot, should the disk be slow.
	if !l.state.Ephemeral {
		if err := writeJSON(l.place.file(linksFile), next); err != nil {
			return err
		}
	}
	if err := l.engine.Set(ctx, changes); err != nil {
		err = fmt.Errorf("change links: %w", err)
		if !l.state.Ephemeral {
			err = errors.Join(err, writeJSON(l.place.file(linksFile), l.links))
		}
		return err
	}
	l.links = next
	if l.state.Ephemeral {
		_ = writeJSON(l.place.file(linksFile), next) // it is owned by this process, which knows
	}
	return nil
}

// borrow takes the lock of a lab that another process made, with the links as they are.
func (l *Lab) borrow(ctx context.Context) (unlock func(), err error) {
	if l.state.Ephemeral {
		return nil, l.inUse()
	}
	lock, err := lockDir(ctx, l.place.dir(), true)
	if err != nil {
		return nil, err
	}
	if err := readJSON(l.place.file(linksFile), &l.links); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() { lock.Close() }, nil
}
