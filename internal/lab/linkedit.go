// Package edit reads changes to links as people write them on a command line:
//
//	Sydney~Pune latency=40ms bandwidth=100mbit loss=1%
//	'Sydney~*' rtt=300ms
//	Sydney~Pune#1 down=true
package lab

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// Errors that callers tell apart.
var (
	ErrSetting   = errors.New("wrong setting")
	ErrPattern   = errors.New("no link matches")
	ErrAmbiguous = errors.New("several links match")
)

// LinkEdit changes some of the qualities of a link and leaves the others.
type LinkEdit struct {
	changes []func(*link.Quality)
	// halves says that a round trip was given, which takes both directions.
	halves bool
}

// linkSetting is one thing that can be changed.
type linkSetting struct {
	name, help string
	parse      func(value string) (func(*link.Quality), error)
}

var linkSettings = []linkSetting{
	{"latency", "one-way delay of each direction, such as 40ms", newSettingParser(unit.ParseDuration, func(q *link.Quality) *time.Duration { return &q.Latency })},
	{"rtt", "round trip, half of it each way: rtt=80ms is latency=40ms", parseRTT},
	{"jitter", "spread of the latency, such as 2ms", newSettingParser(unit.ParseDuration, func(q *link.Quality) *time.Duration { return &q.Jitter })},
	{"distribution", "of the jitter: uniform, normal, pareto or paretonormal", parseDistribution},
	{"bandwidth", "such as 100mbit, or unlimited; counts the bytes of IP packets", newSettingParser(unit.ParseBandwidth, func(q *link.Quality) *int64 { return &q.Bandwidth })},
	{"queue", "bytes that wait for the bandwidth, such as 256KiB; 0B is a default", newSettingParser(unit.ParseBytes, func(q *link.Quality) *int64 { return &q.Queue })},
	{"loss", "share of packets lost, such as 1%, or '{burst: {mean: 1%, length: 5}}'", parseLoss},
	{"duplicate", "share of packets that arrive twice", newSettingParser(unit.ParseFraction, func(q *link.Quality) *float64 { return &q.Duplicate })},
	{"reorder", "share of packets sent past those that are delayed", newSettingParser(unit.ParseFraction, func(q *link.Quality) *float64 { return &q.Reorder })},
	{"corrupt", "share of packets with a flipped bit", newSettingParser(unit.ParseFraction, func(q *link.Quality) *float64 { return &q.Corrupt })},
	{"down", "true drops every packet, false lets them pass", parseDown},
}

// LinkSettingNames lists what can be set, each followed by "=", for completion.
func LinkSettingNames() []string {
	names := make([]string, len(linkSettings))
	for i, s := range linkSettings {
		names[i] = s.name + "="
	}
	return names
}

// LinkSettingHelp describes what can be set, a line each.
func LinkSettingHelp() string {
	var b strings.Builder
	for _, s := range linkSettings {
		fmt.Fprintf(&b, "  %-13s %s\n", s.name, s.help)
	}
	return b.String()
}

// parseLinkEdit reads settings of the form name=value.
func parseLinkEdit(words []string) (LinkEdit, error) {
	var e LinkEdit
	given := map[string]bool{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		i := slices.IndexFunc(linkSettings, func(s linkSetting) bool { return s.name == name })
		if !ok || i < 0 {
			return e, unknownSetting(word, name)
		}
		if given[name] {
			return e, fmt.Errorf("%w: %s is given twice", ErrSetting, name)
		}
		given[name] = true
		change, err := linkSettings[i].parse(value)
		if err != nil {
			return e, fmt.Errorf("%w: %s: %w", ErrSetting, name, err)
		}
		if name == "rtt" {
			e.halves = true
		}
		e.changes = append(e.changes, change)
	}
	if given["rtt"] && given["latency"] {
		return e, fmt.Errorf("%w: give latency (one way) or rtt (both ways), not both", ErrSetting)
	}
	return e, nil
}

// Apply returns q changed.
func (e LinkEdit) Apply(q link.Quality) link.Quality {
	for _, change := range e.changes {
		change(&q)
	}
	return q
}

func unknownSetting(word, name string) error {
	var names []string
	for _, s := range linkSettings {
		names = append(names, s.name)
	}
	err := fmt.Errorf("%w: %s", ErrSetting, word)
	if near := suggest.Nearest(name, names); near != "" {
		return advice.With(err, "did you mean %s=...?", near)
	}
	return advice.With(err, "write name=value, with one of %s", strings.Join(names, ", "))
}

// newSettingParser makes a parser that stores its value where field says.
func newSettingParser[T any](parse func(string) (T, error), field func(*link.Quality) *T) func(string) (func(*link.Quality), error) {
	return func(value string) (func(*link.Quality), error) {
		v, err := parse(value)
		return func(q *link.Quality) { *field(q) = v }, err
	}
}

func parseRTT(value string) (func(*link.Quality), error) {
	v, err := unit.ParseDuration(value)
	return func(q *link.Quality) { q.Latency = v / 2 }, err
}

// parseLoss reads what a topology has under the same key.
func parseLoss(value string) (func(*link.Quality), error) {
	var s topology.LossSpec
	root, err := strict.Parse("loss", []byte(value))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", value, err)
	}
	if ps := strict.Decode(root, &s, ""); len(ps) > 0 {
		return nil, advice.With(errors.New(ps[0].Message), "%s", cmp.Or(ps[0].Hint, "write 1%, or {burst: {mean: 1%, length: 5}}"))
	}
	return func(q *link.Quality) { *q = s.Apply(*q) }, nil
}

func parseDistribution(value string) (func(*link.Quality), error) {
	known := []link.Distribution{link.Uniform, link.Normal, link.Pareto, link.ParetoNormal}
	if d := link.Distribution(value); slices.Contains(known, d) {
		return func(q *link.Quality) { q.Distribution = d }, nil
	}
	return nil, fmt.Errorf("%q is not one of %v", value, known)
}

func parseDown(value string) (func(*link.Quality), error) {
	d, err := strconv.ParseBool(value)
	if err != nil {
		return nil, fmt.Errorf("%q is neither true nor false", value)
	}
	return func(q *link.Quality) { q.Down = d }, nil
}

// EditDirection of a link as a pattern names it: from its left end to its right one, back,
// or both.
type EditDirection string

// The directions.
const (
	EditAB   EditDirection = "ab"
	EditBA   EditDirection = "ba"
	EditBoth EditDirection = "both"
)

// LinkRequest is an Edit of some links in some direction.
type LinkRequest struct {
	// Patterns name links as topology.Match has them.
	Patterns  []string
	Edit      LinkEdit
	Direction EditDirection
}

// ParseLinkRequest reads a command line: patterns and settings in any order.
func ParseLinkRequest(words []string, d EditDirection) (LinkRequest, error) {
	r := LinkRequest{Direction: d}
	var settings []string
	for _, word := range words {
		if strings.Contains(word, "=") {
			settings = append(settings, word)
		} else {
			r.Patterns = append(r.Patterns, word)
		}
	}
	var err error
	if r.Edit, err = parseLinkEdit(settings); err != nil {
		return r, err
	}
	switch {
	case d != EditAB && d != EditBA && d != EditBoth:
		return r, fmt.Errorf("%w: direction %q: want ab, ba or both", ErrSetting, d)
	case r.Edit.halves && d != EditBoth:
		return r, advice.With(fmt.Errorf("%w: rtt belongs to both directions", ErrSetting), "give latency, which is one way")
	case len(settings) > 0 && len(r.Patterns) == 0:
		return r, advice.With(fmt.Errorf("%w: no link is named", ErrPattern), "give one such as Pune~Sydney, or '*' for all")
	case len(settings) == 0 && len(r.Patterns) > 0:
		return r, fmt.Errorf("%w: none is given for %s", ErrSetting, strings.Join(r.Patterns, " "))
	}
	return r, nil
}

// Empty tells that nothing is asked for.
func (r LinkRequest) Empty() bool { return len(r.Patterns) == 0 }

// Changes are what r makes of links. A pattern that matches none is an error, and so is a pair
// that has several links: what one of them was set to by its ID is overwritten only if the
// pattern includes it explicitly.
func (r LinkRequest) Changes(links []Link) ([]link.Change, error) {
	changes := make([]link.Change, len(links))
	for _, pattern := range r.Patterns {
		var found []string
		exact := slices.ContainsFunc(links, func(l Link) bool { return l.ID == pattern })
		for i, l := range links {
			forward, backward, err := topology.Match(pattern, l.ID, l.A, l.B)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrPattern, err)
			}
			if !forward && !backward || exact && l.ID != pattern {
				continue
			}
			found = append(found, l.ID)
			if forward && r.Direction != EditBA || backward && r.Direction != EditAB {
				q := r.Edit.Apply(l.AB)
				changes[i].AB = &q
			}
			if forward && r.Direction != EditAB || backward && r.Direction != EditBA {
				q := r.Edit.Apply(l.BA)
				changes[i].BA = &q
			}
		}
		switch {
		case len(found) == 0:
			return nil, noLinkMatches(pattern, links)
		case len(found) > 1 && strings.Contains(pattern, "~") && !strings.ContainsAny(pattern, "*?[#"):
			return nil, advice.With(fmt.Errorf("%w %s: %s", ErrAmbiguous, pattern, strings.Join(found, ", ")),
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

func noLinkMatches(pattern string, links []Link) error {
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
