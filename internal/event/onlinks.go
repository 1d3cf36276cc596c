package event

import (
	"context"
	"fmt"

	"skerry/internal/link"
)

// linkAction is the action of every event that changes what links do to packets.
type linkAction struct {
	links []linkTarget
	text  string
	layer layer
}

// newLinkAction changes the chosen links by f.
func newLinkAction(links []linkTarget, text string, f func(link.Quality) link.Quality) action {
	if len(links) == 0 {
		return nil
	}
	a := &linkAction{links: links, text: text, layer: layer{changes: map[direction]func(link.Quality) link.Quality{}}}
	for _, l := range links {
		for _, d := range l.directions {
			a.layer.changes[d] = f
		}
	}
	return a
}

func (a *linkAction) targets() []string { return linkIDs(a.links) }

func linkIDs(links []linkTarget) []string {
	ids := make([]string, len(links))
	for i, l := range links {
		ids[i] = l.id
	}
	return ids
}

// what fills the names of the links into the text.
func (a *linkAction) what() string {
	names := joinNames(a.targets(), "links")
	if len(a.links) <= 4 && len(a.links) > 0 && len(a.links[0].directions) == 1 {
		names += ", one way"
	}
	return fmt.Sprintf(a.text, names)
}

func (a *linkAction) apply(ctx context.Context, w *Testbed, p *progress) error {
	u, err := w.Links.addLayer(ctx, &a.layer)
	p.setLinkUpdate(u)
	return err
}

func (a *linkAction) revert(ctx context.Context, w *Testbed, p *progress) error {
	u, err := w.Links.removeLayer(ctx, &a.layer)
	p.setLinkUpdate(u)
	return err
}
