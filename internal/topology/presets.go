package topology

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/base/unit"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

// ErrPreset is returned for an unknown preset or invalid preset options.
var ErrPreset = errors.New("unknown preset")

// shapePreset is a computed preset: NAME[:N][,OPTION=VALUE...].
type shapePreset struct {
	name, connect string
	nodes         int // 0 if the name needs N
	most          int
}

var shapes = []shapePreset{
	{name: "pair", connect: "full", nodes: 2},
	{name: "triangle", connect: "full", nodes: 3},
	{name: "ring", connect: "ring", most: 4096},
	{name: "mesh", connect: "full", most: 400},
}

// shapeRTT is the default round-trip time of links of a computed preset.
const shapeRTT = 20 * time.Millisecond

// Presets lists the presets in the form that users write.
func Presets() []string {
	list := []string{"azure8", "azure8-geo"}
	for _, s := range shapes {
		if s.nodes == 0 {
			s.name += ":N"
		}
		list = append(list, s.name)
	}
	return list
}

// loadPreset returns the spec of a preset such as azure8, ring:16 or mesh:8,rtt=40ms,bandwidth=100mbit. Options of
// computed presets are the keys of DefaultsSpec. The error wraps ErrPreset.
func loadPreset(name string) (Spec, error) {
	if data, err := presetFiles.ReadFile("presets/" + name + ".yaml"); err == nil {
		return decodeSpec("preset "+name, data)
	}
	head, options, _ := strings.Cut(name, ",")
	kind, count, counted := strings.Cut(head, ":")
	i := slices.IndexFunc(shapes, func(s shapePreset) bool { return s.name == kind })
	if i < 0 {
		return Spec{}, unknownPresetError(name, kind)
	}
	s := shapes[i]
	switch n, err := strconv.Atoi(count); {
	case counted == (s.nodes > 0), s.nodes == 0 && err != nil:
		return Spec{}, presetError(name, fmt.Sprintf("write %s", Presets()[2+i]))
	case s.nodes == 0 && (n < 2 || n > s.most):
		return Spec{}, presetError(name, fmt.Sprintf("%s supports 2 to %d nodes", kind, s.most))
	case s.nodes == 0:
		s.nodes = n
	}
	return s.spec(name, options)
}

func (s shapePreset) spec(name, options string) (Spec, error) {
	defaults := &strict.Node{Kind: strict.Map}
	for option := range strings.SplitSeq(options, ",") {
		if option == "" {
			continue
		}
		key, text, _ := strings.Cut(option, "=")
		value, err := strict.ParseValue("preset "+name, text)
		if err == nil {
			err = strict.Set(defaults, DefaultsSpec{}, strings.TrimSpace(key), value.Pos, value)
		}
		if err != nil {
			return Spec{}, err
		}
	}
	spec := Spec{Name: name, Connect: s.connect}
	if ps := strict.Decode(defaults, &spec.Defaults, ""); len(ps) > 0 {
		return Spec{}, ps
	}
	if d := &spec.Defaults; d.RTT == nil && d.Latency == nil {
		rtt := unit.Duration(shapeRTT)
		d.RTT = &rtt
	}
	for i := range s.nodes {
		spec.Sites = append(spec.Sites, SiteSpec{Name: fmt.Sprintf("n%d", i+1)})
	}
	return spec, nil
}

func unknownPresetError(name, kind string) error {
	known := make([]string, 0, len(Presets()))
	for _, p := range Presets() {
		p, _, _ = strings.Cut(p, ":")
		known = append(known, p)
	}
	if near := suggest.Nearest(kind, known); near != "" {
		return presetError(name, fmt.Sprintf("did you mean %q?", near))
	}
	return presetError(name, "presets are "+strings.Join(Presets(), ", ")+"; topology files end in .yaml")
}

func presetError(name, hint string) error {
	return strict.Problems{{Message: fmt.Sprintf("%v %q", ErrPreset, name), Hint: hint, Err: ErrPreset}}
}
