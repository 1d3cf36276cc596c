package edit

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// Direction of a link as a pattern names it: from its left end to its right one, back,
// or both.
type Direction string

// The directions.
const (
	AB   Direction = "ab"
	BA   Direction = "ba"
	Both Direction = "both"
)

// Request is an Edit of some links in some direction.
type Request struct {
	// Patterns name links as topology.Match has them.
	Patterns  []string
	Edit      Edit
	Direction Direction
}

// Read reads a command line: patterns and settings in any order.
func Read(words []string, d Direction) (Request, error) {
	r := Request{Direction: d}
	var settings []string
	for _, word := range words {
		if strings.Contains(word, "=") {
			settings = append(settings, word)
		} else {
			r.Patterns = append(r.Patterns, word)
		}
	}
	var err error
	if r.Edit, err = parse(settings); err != nil {
		return r, err
	}
	switch {
	case d != AB && d != BA && d != Both:
		return r, fmt.Errorf("%w: direction %q: want ab, ba or both", ErrSetting, d)
	case r.Edit.halves && d != Both:
		return r, advice.With(fmt.Errorf("%w: rtt belongs to both directions", ErrSetting), "give latency, which is one way")
	case len(settings) > 0 && len(r.Patterns) == 0:
		return r, advice.With(fmt.Errorf("%w: no link is named", ErrPattern), "give one such as Pune~Sydney, or '*' for all")
	case len(settings) == 0 && len(r.Patterns) > 0:
		return r, fmt.Errorf("%w: none is given for %s", ErrSetting, strings.Join(r.Patterns, " "))
	}
	return r, nil
}

// Empty tells that nothing is asked for.
func (r Request) Empty() bool { return len(r.Patterns) == 0 }

// Changes are what r makes of links. A pattern that matches none is an error, and so is a pair
// that has several links: what one of them was set to by its ID is overwritten only if the
// pattern includes it explicitly.
func (r Request) Changes(links []lab.Link) ([]link.Change, error) {
	changes := make([]link.Change, len(links))
	for _, pattern := range r.Patterns {
		var found []string
		exact := slices.ContainsFunc(links, func(l lab.Link) bool { return l.ID == pattern })
		for i, l := range links {
			forward, backward, err := topology.Match(pattern, l.ID, l.A, l.B)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrPattern, err)
			}
			if !forward && !backward || exact && l.ID != pattern {
				continue
			}
			found = append(found, l.ID)
			if forward && r.Direction != BA || backward && r.Direction != AB {
				q := r.Edit.Apply(l.AB)
				changes[i].AB = &q
			}
			if forward && r.Direction != AB || backward && r.Direction != BA {
				q := r.Edit.Apply(l.BA)
				changes[i].BA = &q
			}
		}
		switch {
		case len(found) == 0:
			return nil, noMatch(pattern, links)
		case len(found) > 1 && strings.Contains(pattern, "~") && !strings.ContainsAny(pattern, "*?[#"):
			return nil, advice.With(fmt.Errorf("%w %s: %s", ErrSeveral, pattern, strings.Join(found, ", ")),
				"name one of them, or write '%s#*' for all", pattern)
		}
	}
	var made []link.Change
	for i, c := range changes {
		if c.AB != nil || c.BA != nil {
			c.ID = links[i].ID
			made = append(made, c)
		}
	}
	return made, nil
}

func noMatch(pattern string, links []lab.Link) error {
	err := fmt.Errorf("%w %s", ErrPattern, pattern)
	var known []topology.Link
	for _, l := range links {
		known = append(known, topology.Link{ID: l.ID, A: l.A, B: l.B})
	}
	if near := topology.NearestLink(pattern, known); near != "" {
		return advice.With(err, "did you mean %s?", near)
	}
	return advice.With(err, "see `skerry lab links`")
}
