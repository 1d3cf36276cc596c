package lab

import (
	"context"
	"fmt"

	"skerry/internal/base/advice"
	"skerry/internal/link"
)

// Real are the links that are left as they are.
func (l *Lab) Real() (links []Link) {
	for _, k := range l.Links() {
		if k.Real {
			links = append(links, k)
		}
	}
	return links
}

// leave has links between machines be as they are; ErrInvalid where there is none.
func (l *Lab) leave() error {
	at, found := l.Places(), false
	for i, k := range l.links.Links {
		if at[k.A] == at[k.B] {
			continue
		}
		k.Real, found = true, true
		k.AB, k.BA, k.BaseAB, k.BaseBA = link.Quality{}, link.Quality{}, link.Quality{}, link.Quality{}
		l.links.Links[i] = k
	}
	if found {
		return nil
	}
	return ErrOneMachine
}

// ErrOneMachine says that links are to be left as they are, and none leads to another machine.
var ErrOneMachine = advice.With(fmt.Errorf("%w: links between machines are to be left as they are, and all nodes stand on one machine", ErrInvalid),
	"give machines for the sites (site in the machines file, or place), or leave links: real out")

// learn notes how far apart the machines are that real links lead between. Packets have crossed on all
// of them.
func (l *Lab) learn(ctx context.Context) error {
	stats, err := l.part.Stats(ctx)
	if err != nil {
		return fmt.Errorf("measuring the ways between machines: %w", err)
	}
	at := l.links.byID()
	for _, s := range stats {
		if k := &l.links.Links[at[s.ID]]; k.Real {
			k.Way = max(k.Way, s.Path.Delay)
		}
	}
	return nil
}
