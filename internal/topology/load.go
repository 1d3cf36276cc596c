package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/strict"
)

// maxFrom bounds how many topology files may build on each other.
const maxFrom = 8

// Load returns the topology behind what a user named: a preset or a YAML file. The file may
// also be an experiment, of which the topology is taken. The error is strict.Problems for
// mistakes in the file, and wraps ErrPreset or fs.ErrNotExist where nothing has that name.
func Load(arg string) (Topology, error) {
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
	if ps := (strict.Problems)(nil); errors.As(err, &ps) {
		return t, ps.Locate(root, prefix)
	}
	return t, err
}

// isFile tells the path of a file from the name of a preset.
func isFile(arg string) bool {
	ext := filepath.Ext(arg)
	if ext == ".yaml" || ext == ".yml" {
		return true
	}
	if _, err := preset(arg); !errors.Is(err, ErrPreset) {
		return false
	}
	_, err := os.Stat(arg)
	return err == nil || strings.ContainsRune(arg, filepath.Separator)
}

func decode(name string, data []byte) (Spec, error) {
	var s Spec
	root, err := strict.Parse(name, data)
	if err != nil {
		return s, err
	}
	return s, strict.Decode(root, &s, "").AsError()
}

// resolve replaces From by what it names, with what s says put over it, and makes the
// paths of files independent of dir.
func (s Spec) resolve(dir string, read ReadFile, depth int) (Spec, error) {
	for _, path := range []*string{&s.Matrix.Latency, &s.Matrix.Bandwidth} {
		if *path != "" && !strings.Contains(*path, "\n") {
			*path = under(dir, *path)
		}
	}
	if ps := s.duplicates(); len(ps) > 0 {
		return s, ps
	}
	if s.From == "" {
		return s, nil
	}
	base, err := preset(s.From)
	if errors.Is(err, ErrPreset) && (filepath.Ext(s.From) != "" || strings.ContainsRune(s.From, filepath.Separator)) {
		base, err = readBase(under(dir, s.From), read, depth)
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
	return base.overlay(s), nil
}

// duplicates reports sites and nodes that are named twice in one file.
func (s Spec) duplicates() (ps strict.Problems) {
	seen := map[string]bool{}
	check := func(list, what string, i int, name string) {
		if seen[what+name] {
			ps = append(ps, strict.Problem{Path: fmt.Sprintf("%s[%d]", list, i), Message: fmt.Sprintf("the %s %q is named twice", what, name), Hint: "give it another name"})
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
		return Spec{}, fmt.Errorf("%s: topology files build on each other in a circle, or more than %d deep", path, maxFrom)
	}
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Spec{}, strict.Problems{{Message: fmt.Sprintf("there is no topology file %s", path), Err: err, Hint: "paths are relative to the file that names them"}}
	}
	if err != nil {
		return Spec{}, fmt.Errorf("reading the topology: %w", err)
	}
	base, err := decode(path, data)
	if err != nil {
		return Spec{}, err
	}
	return base.resolve(filepath.Dir(path), read, depth+1)
}

// overlay puts what over says over s: sites and nodes by name, links after those of s.
func (s Spec) overlay(over Spec) Spec {
	s.From = over.From
	pick(&s.Name, over.Name)
	pick(&s.Connect, over.Connect)
	pick(&s.Matrix.Latency, over.Matrix.Latency)
	pick(&s.Matrix.Bandwidth, over.Matrix.Bandwidth)
	pick(&s.Distance.Detour, over.Distance.Detour)
	s.Links = append(slices.Clone(s.Links), over.Links...)
	s.Sites = slices.Clone(s.Sites)
	for _, o := range over.Sites {
		i := slices.IndexFunc(s.Sites, func(x SiteSpec) bool { return x.Name == o.Name })
		if i < 0 {
			s.Sites = append(s.Sites, o)
			continue
		}
		pick(&s.Sites[i].Lat, o.Lat)
		pick(&s.Sites[i].Lon, o.Lon)
		pick(&s.Sites[i].Nodes, o.Nodes)
	}
	s.Nodes = slices.Clone(s.Nodes)
	for _, o := range over.Nodes {
		i := slices.IndexFunc(s.Nodes, func(x NodeSpec) bool { return x.Name == o.Name })
		if i < 0 {
			s.Nodes = append(s.Nodes, o)
			continue
		}
		pick(&s.Nodes[i].Site, o.Site)
		pick(&s.Nodes[i].Role, o.Role)
		pick(&s.Nodes[i].CPU, o.CPU)
		pick(&s.Nodes[i].Memory, o.Memory)
	}
	d, o := &s.Defaults, over.Defaults
	if o.Latency != nil || o.RTT != nil {
		d.Latency, d.RTT = o.Latency, o.RTT
	}
	pick(&d.Bandwidth, o.Bandwidth)
	pick(&d.Jitter, o.Jitter)
	pick(&d.Distribution, o.Distribution)
	pick(&d.Loss, o.Loss)
	pick(&d.Duplicate, o.Duplicate)
	pick(&d.Reorder, o.Reorder)
	pick(&d.Corrupt, o.Corrupt)
	pick(&d.Queue, o.Queue)
	pick(&d.SiteRTT, o.SiteRTT)
	pick(&d.SiteBandwidth, o.SiteBandwidth)
	pick(&d.CPU, o.CPU)
	pick(&d.Memory, o.Memory)
	return s
}

// pick takes what was given over what was there.
func pick[T comparable](to *T, given T) {
	var none T
	if given != none {
		*to = given
	}
}
