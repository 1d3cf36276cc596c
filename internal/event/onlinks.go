package event

import (
	"context"
	"fmt"

	"skerry/internal/link"
)

// onLinks is the action of every event that changes what links do to packets.
type onLinks struct {
	links []chosen
	text  string
	layer layer
}

// newOnLinks changes the chosen links by f.
func newOnLinks(links []chosen, text string, f func(link.Quality) link.Quality) action {
	if len(links) == 0 {
		return nil
	}
	a := &onLinks{links: links, text: text, layer: layer{on: map[direction]func(link.Quality) link.Quality{}}}
	for _, l := range links {
		for _, d := range l.ways {
			a.layer.on[d] = f
		}
	}
	return a
}

func (a *onLinks) targets() []string { return ids(a.links) }

func ids(links []chosen) []string {
	ids := make([]string, len(links))
	for i, l := range links {
		ids[i] = l.id
	}
	return ids
}

// what fills the names of the links into the text.
func (a *onLinks) what() string {
	names := few(a.targets(), "links")
	if len(a.links) <= 4 && len(a.links) > 0 && len(a.links[0].ways) == 1 {
		names += ", one way"
	}
	return fmt.Sprintf(a.text, names)
}

func (a *onLinks) apply(ctx context.Context, w *World, p *progress) error {
	u, err := w.Net.add(ctx, &a.layer)
	p.changed(u)
	return err
}

func (a *onLinks) revert(ctx context.Context, w *World, p *progress) error {
	u, err := w.Net.remove(ctx, &a.layer)
	p.changed(u)
	return err
}
