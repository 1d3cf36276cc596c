// Package edit reads changes to links as people write them on a command line:
//
//	Sydney~Pune latency=40ms bandwidth=100mbit loss=1%
//	'Sydney~*' rtt=300ms
//	Sydney~Pune#1 down=true
package edit

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
	ErrSetting = errors.New("wrong setting")
	ErrPattern = errors.New("no link matches")
	ErrSeveral = errors.New("several links match")
)

// Edit changes some of the qualities of a link and leaves the others.
type Edit struct {
	changes []func(*link.Quality)
	// halves says that a round trip was given, which takes both directions.
	halves bool
}

// setting is one thing that can be changed.
type setting struct {
	name, help string
	parse      func(value string) (func(*link.Quality), error)
}

var settings = []setting{
	{"latency", "one-way delay of each direction, such as 40ms", parsed(unit.ParseDuration, func(q *link.Quality) *time.Duration { return &q.Latency })},
	{"rtt", "round trip, half of it each way: rtt=80ms is latency=40ms", rtt},
	{"jitter", "spread of the latency, such as 2ms", parsed(unit.ParseDuration, func(q *link.Quality) *time.Duration { return &q.Jitter })},
	{"distribution", "of the jitter: uniform, normal, pareto or paretonormal", distribution},
	{"bandwidth", "such as 100mbit, or unlimited; counts the bytes of IP packets", parsed(unit.ParseBandwidth, func(q *link.Quality) *int64 { return &q.Bandwidth })},
	{"queue", "bytes that wait for the bandwidth, such as 256KiB; 0B is a default", parsed(unit.ParseBytes, func(q *link.Quality) *int64 { return &q.Queue })},
	{"loss", "share of packets lost, such as 1%, or '{burst: {mean: 1%, length: 5}}'", loss},
	{"duplicate", "share of packets that arrive twice", parsed(unit.ParseFraction, func(q *link.Quality) *float64 { return &q.Duplicate })},
	{"reorder", "share of packets sent past those that are delayed", parsed(unit.ParseFraction, func(q *link.Quality) *float64 { return &q.Reorder })},
	{"corrupt", "share of packets with a flipped bit", parsed(unit.ParseFraction, func(q *link.Quality) *float64 { return &q.Corrupt })},
	{"down", "true drops every packet, false lets them pass", down},
}

// Names lists what can be set, each followed by "=", for completion.
func Names() []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.name + "="
	}
	return names
}

// Help describes what can be set, a line each.
func Help() string {
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, "  %-13s %s\n", s.name, s.help)
	}
	return b.String()
}

// parse reads settings of the form name=value.
func parse(words []string) (Edit, error) {
	var e Edit
	given := map[string]bool{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name })
		if !ok || i < 0 {
			return e, unknown(word, name)
		}
		if given[name] {
			return e, fmt.Errorf("%w: %s is given twice", ErrSetting, name)
		}
		given[name] = true
		change, err := settings[i].parse(value)
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
func (e Edit) Apply(q link.Quality) link.Quality {
	for _, change := range e.changes {
		change(&q)
	}
	return q
}

func unknown(word, name string) error {
	var names []string
	for _, s := range settings {
		names = append(names, s.name)
	}
	err := fmt.Errorf("%w: %s", ErrSetting, word)
	if near := suggest.Nearest(name, names); near != "" {
		return advice.With(err, "did you mean %s=...?", near)
	}
	return advice.With(err, "write name=value, with one of %s", strings.Join(names, ", "))
}

// parsed makes a parser that stores its value where field says.
func parsed[T any](parse func(string) (T, error), field func(*link.Quality) *T) func(string) (func(*link.Quality), error) {
	return func(value string) (func(*link.Quality), error) {
		v, err := parse(value)
		return func(q *link.Quality) { *field(q) = v }, err
	}
}

func rtt(value string) (func(*link.Quality), error) {
	v, err := unit.ParseDuration(value)
	return func(q *link.Quality) { q.Latency = v / 2 }, err
}

// loss reads what a topology has under the same key.
func loss(value string) (func(*link.Quality), error) {
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

func distribution(value string) (func(*link.Quality), error) {
	known := []link.Distribution{link.Uniform, link.Normal, link.Pareto, link.ParetoNormal}
	if d := link.Distribution(value); slices.Contains(known, d) {
		return func(q *link.Quality) { q.Distribution = d }, nil
	}
	return nil, fmt.Errorf("%q is not one of %v", value, known)
}

func down(value string) (func(*link.Quality), error) {
	d, err := strconv.ParseBool(value)
	if err != nil {
		return nil, fmt.Errorf("%q is neither true nor false", value)
	}
	return func(q *link.Quality) { q.Down = d }, nil
}
