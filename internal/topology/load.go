package topology

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/base/unit"
)

// maxFrom bounds the chain of topology files that extend each other.
const maxFrom = 8

// Load returns the topology that arg names: a preset, a topology file, or an experiment file with a topology.
// Mistakes in the file, including those that checks find, are returned as strict.Problems. The error wraps ErrPreset
// or fs.ErrNotExist for an unknown name.
func Load(arg string, checks ...func(Topology) strict.Problems) (Topology, error) {
	if !isFile(arg) {
		return Spec{From: arg}.Build(".", os.ReadFile)
	}
	data, err := os.ReadFile(arg)
	if err != nil {
		return Topology{}, fmt.Errorf("reading the topology: %w", err)
	}
	root, err := strict.Parse(arg, data)
	if err != nil {
		return Topology{}, err
	}
	prefix := ""
	if t := root.Get("topology"); t != nil {
		root, prefix = &strict.Node{Kind: strict.Map, Pos: root.Pos, Entries: []strict.Entry{{Key: "topology", Pos: t.Pos, Value: t}}}, "topology"
	}
	var spec Spec
	if ps := strict.Decode(root.At(prefix), &spec, prefix); len(ps) > 0 {
		return Topology{}, ps
	}
	if spec.Name == "" {
		spec.Name = strings.TrimSuffix(filepath.Base(arg), filepath.Ext(arg))
	}
	t, err := spec.Build(filepath.Dir(arg), os.ReadFile)
	for _, check := range checks {
		if err == nil {
			err = check(t).AsError()
		}
	}
	if ps := (strict.Problems)(nil); errors.As(err, &ps) {
		return t, ps.Locate(root, prefix)
	}
	return t, err
}

// isFile reports whether arg is a file path and not a preset.
func isFile(arg string) bool {
	ext := filepath.Ext(arg)
	if ext == ".yaml" || ext == ".yml" {
		return true
	}
	if _, err := loadPreset(arg); !errors.Is(err, ErrPreset) {
		return false
	}
	_, err := os.Stat(arg)
	return err == nil || strings.ContainsRune(arg, filepath.Separator)
}

func decodeSpec(name string, data []byte) (Spec, error) {
	var s Spec
	root, err := strict.Parse(name, data)
	if err != nil {
		return s, err
	}
	return s, strict.Decode(root, &s, "").AsError()
}

// resolve merges s over the base that From names, and resolves file paths against dir.
func (s Spec) resolve(dir string, read ReadFile, depth int) (Spec, error) {
	for _, path := range []*string{&s.Matrix.Latency, &s.Matrix.Bandwidth} {
		if *path != "" && !strings.Contains(*path, "\n") {
			*path = resolvePath(dir, *path)
		}
	}
	if ps := s.findDuplicates(); len(ps) > 0 {
		return s, ps
	}
	if s.From == "" {
		return s, nil
	}
	base, err := loadPreset(s.From)
	if errors.Is(err, ErrPreset) && (filepath.Ext(s.From) != "" || strings.ContainsRune(s.From, filepath.Separator)) {
		base, err = readBase(resolvePath(dir, s.From), read, depth)
	}
	if ps := (strict.Problems)(nil); errors.As(err, &ps) {
		for i := range ps {
			if ps[i].Pos.Source == nil {
				ps[i].Path = "from"
			}
		}
		return s, ps
	}
	if err != nil {
		return s, strict.Problems{{Path: "from", Message: err.Error(), Err: err}}
	}
	return base.merge(s), nil
}

// findDuplicates reports duplicate names of sites and nodes in one file.
func (s Spec) findDuplicates() (ps strict.Problems) {
	seen := map[string]bool{}
	check := func(list, what string, i int, name string) {
		if seen[what+name] {
			ps = append(ps, strict.Problem{
				Path: fmt.Sprintf("%s[%d]", list, i), Message: fmt.Sprintf("duplicate %s %q", what, name), Hint: "rename one of them",
			})
		}
		seen[what+name] = true
	}
	for i, x := range s.Sites {
		check("sites", "site", i, x.Name)
	}
	for i, n := range s.Nodes {
		check("nodes", "node", i, n.Name)
	}
	return ps
}

func readBase(path string, read ReadFile, depth int) (Spec, error) {
	if depth == maxFrom {
		return Spec{}, fmt.Errorf("%s: topology files form a cycle, or nest more than %d deep", path, maxFrom)
	}
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Spec{}, strict.Problems{{
			Message: fmt.Sprintf("topology file %s does not exist", path), Err: err,
			Hint: "give a path relative to the file that contains it",
		}}
	}
	if err != nil {
		return Spec{}, fmt.Errorf("reading the topology: %w", err)
	}
	base, err := decodeSpec(path, data)
	if err != nil {
		return Spec{}, err
	}
	return base.resolve(filepath.Dir(path), read, depth+1)
}

// merge returns s overridden by over. Sites and nodes merge by name; links are appended.
func (s Spec) merge(over Spec) Spec {
	m := s
	overrideFields(&m, over)
	m.From = over.From
	m.Links = append(slices.Clone(s.Links), over.Links...)
	m.Sites = mergeNamed(s.Sites, over.Sites, func(x SiteSpec) string { return x.Name })
	m.Nodes = mergeNamed(s.Nodes, over.Nodes, func(x NodeSpec) string { return x.Name })
	m.Matrix, m.Distance, m.Defaults = s.Matrix, s.Distance, s.Defaults
	overrideFields(&m.Matrix, over.Matrix)
	overrideFields(&m.Distance, over.Distance)
	overrideFields(&m.Defaults, over.Defaults)
	if o := over.Defaults; o.Latency != nil || o.RTT != nil { // they exclude each other
		m.Defaults.Latency, m.Defaults.RTT = o.Latency, o.RTT
	}
	m.Defaults.TCP = s.Defaults.TCP
	overrideFields(&m.Defaults.TCP, over.Defaults.TCP)
	return m
}

func mergeNamed[T any](list, over []T, name func(T) string) []T {
	list = slices.Clone(list)
	for _, o := range over {
		if i := slices.IndexFunc(list, func(x T) bool { return name(x) == name(o) }); i >= 0 {
			overrideFields(&list[i], o)
		} else {
			list = append(list, o)
		}
	}
	return list
}

// overrideFields sets the fields of a struct whose values in given are not zero. Fields of an embedded struct count
// one by one.
func overrideFields[T any](to *T, given T) {
	overrideValues(reflect.ValueOf(to).Elem(), reflect.ValueOf(given))
}

func overrideValues(to, given reflect.Value) {
	for i := range given.NumField() {
		switch {
		case given.Type().Field(i).Anonymous:
			overrideValues(to.Field(i), given.Field(i))
		case !given.Field(i).IsZero():
			to.Field(i).Set(given.Field(i))
		}
	}
}

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
