package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skerry/internal/base/strict"
)

// maxFrom bounds how many topology files may build on each other.
const maxFrom = 8

// Load returns the topology behind what a user named: a preset or a YAML file. The file may
// also be an experiment, of which the topology is taken. The error is strict.Problems for
// mistakes in the file, those that checks find of the topology among them, and wraps
// ErrPreset or fs.ErrNotExist where nothing has that name.
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
	return base.merge(s), nil
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
