package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/lab/overlay"
	"skerry/internal/topology"
)

// section is where a topology has its overlay.
const section = "overlay"

// Check returns what is wrong with the overlay of a topology: its kind, and what tunes it.
// Paths are relative to the topology.
func Check(t topology.Topology) strict.Problems { return check(t.Overlay) }

func check(o topology.Overlay) (ps strict.Problems) {
	fail := func(path, message, hint string) {
		ps = append(ps, strict.Problem{Path: path, Message: message, Hint: hint})
	}
	chosen, routed := find(o.Kind)
	if known := append([]string{topology.Direct}, Names()...); o.Kind != "" && !slices.Contains(known, o.Kind) {
		hint := ""
		if near := suggest.Nearest(o.Kind, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		fail(strict.Join(section, "kind"), fmt.Sprintf("%q is not one of %s", o.Kind, strings.Join(known, ", ")), hint)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Settings)) {
		path := strict.Join(section, name)
		switch _, known := find(name); {
		case !known:
			fail(path, fmt.Sprintf("unknown key %q", name), "known are kind, "+strings.Join(Names(), ", "))
		case name != o.Kind:
			fail(path, fmt.Sprintf("this tunes %s, which does not route here", name), fmt.Sprintf("write overlay: {kind: %s, ...}", name))
		}
	}
	if routed {
		_, mistakes := read(chosen, o.Settings[chosen.Name])
		ps = append(ps, mistakes...)
	}
	return ps
}

// read makes the options of what a topology has under an overlay's name.
func read(a overlay.About, settings map[string]any) (overlay.Options, strict.Problems) {
	options, path := a.Options(), strict.Join(section, a.Name)
	ps := strict.Decode(strict.Mapping(settings), options, path)
	for i, p := range ps { // messages begin with the path of the key, or of what lacks one
		ps[i].Message = strings.TrimPrefix(strings.TrimPrefix(p.Message, p.Path+": "), path+": ")
	}
	if len(ps) > 0 {
		return nil, ps
	}
	for _, p := range options.Mistakes() {
		p.Path = strict.Join(path, p.Path)
		ps = append(ps, p)
	}
	return options, ps
}
