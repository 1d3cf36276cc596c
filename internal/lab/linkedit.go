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

// Errors of link edits.
var (
	ErrSetting   = errors.New("invalid setting")
	ErrPattern   = errors.New("no link matches")
	ErrAmbiguous = errors.New("several links match")
)

// LinkEdit changes some qualities of a link and keeps the others.
type LinkEdit struct {
	changes []func(*link.Quality)
	// halves is true if a round trip was given, which requires both directions.
	halves bool
}

// linkSetting is one quality that can be changed.
type linkSetting struct {
	name, help string
	parse      func(value string) (func(*link.Quality), error)
}

var linkSettings = []linkSetting{
	{"latency", "one-way delay of each direction, such as 40ms",
		newSettingParser(unit.ParseDuration, func(q *link.Quality) *time.Duration { return &q.Latency })},
	{"rtt", "round trip, half of it each way: rtt=80ms is latency=40ms", parseRTT},
	{"jitter", "spread of the latency, such as 2ms", newSettingParser(unit.ParseDuration,
		func(q *link.Quality) *time.Duration { return &q.Jitter })},
	{"distribution", "of the jitter: uniform, normal, pareto or paretonormal", parseDistribution},
	{"bandwidth", "such as 100mbit, or unlimited; counts the bytes of IP packets",
		newSettingParser(unit.ParseBandwidth, func(q *link.Quality) *int64 { return &q.Bandwidth })},
	{"queue", "size of the queue, such as 256KiB; 0B for the default",
		newSettingParser(unit.ParseBytes, func(q *link.Quality) *int64 { return &q.Queue })},
	{"loss", "share of packets lost, such as 1%, or '{burst: {mean: 1%, length: 5}}'", parseLoss},
	{"duplicate", "share of duplicated packets", newSettingParser(unit.ParseFraction, func(q *link.Quality) *float64 { return &q.Duplicate })},
	{"reorder", "share of packets that overtake delayed ones", newSettingParser(unit.ParseFraction,
		func(q *link.Quality) *float64 { return &q.Reorder })},
	{"corrupt", "share of packets with a flipped bit", newSettingParser(unit.ParseFraction,
		func(q *link.Quality) *float64 { return &q.Corrupt })},
	{"down", "true drops every packet, false lets them pass", parseDown},
}

// LinkSettingNames lists the settings for completion, each followed by "=".
func LinkSettingNames() []string {
	names := make([]string, len(linkSettings))
	for i, s := range linkSettings {
		names[i] = s.name + "="
	}
	return names
}

// LinkSettingHelp describes the settings, one per line.
func LinkSettingHelp() string {
	var b strings.Builder
	for _, s := range linkSettings {
		fmt.Fprintf(&b, "  %-13s %s\n", s.name, s.help)
	}
	return b.String()
}

// parseLinkEdit parses settings of the form name=value.
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
			return e, fmt.Errorf("%w: duplicate %s", ErrSetting, name)
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

// newSettingParser returns a parser that stores its value in a field.
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

// parseLoss parses the value of the same key of a topology.
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
		return nil, fmt.Errorf("%q is not true or false", value)
	}
	return func(q *link.Quality) { q.Down = d }, nil
}

// EditDirection is the direction of a link relative to a pattern: from its left end to its right end, back, or both.
type EditDirection string

const (
	EditAB   EditDirection = "ab"
	EditBA   EditDirection = "ba"
	EditBoth EditDirection = "both"
)

// LinkRequest is an edit of some links in some direction.
type LinkRequest struct {
	// Patterns select links; see topology.Match.
	Patterns  []string
	Edit      LinkEdit
	Direction EditDirection
}

// ParseLinkRequest parses a command line of patterns and settings in any order:
//
//	Sydney~Pune latency=40ms bandwidth=100mbit loss=1%
//	'Sydney~*' rtt=300ms
//	Sydney~Pune#1 down=true
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
		return r, advice.With(fmt.Errorf("%w: rtt applies to both directions", ErrSetting), "use latency, which is one way")
	case len(settings) > 0 && len(r.Patterns) == 0:
		return r, advice.With(fmt.Errorf("%w: no link given", ErrPattern), "name a link such as Pune~Sydney, or '*' for all")
	case len(settings) == 0 && len(r.Patterns) > 0:
		return r, fmt.Errorf("%w: no setting for %s", ErrSetting, strings.Join(r.Patterns, " "))
	}
	return r, nil
}

// Empty reports whether no change is requested.
func (r LinkRequest) Empty() bool { return len(r.Patterns) == 0 }

// Changes returns the changes of links. A pattern without a match is an error, and so is a pair with several links: a
// setting made by ID is overwritten only by an explicit pattern.
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
				"name one link, or write '%s#*' for all", pattern)
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
	return advice.With(err, "list the links with `skerry lab links`")
}
