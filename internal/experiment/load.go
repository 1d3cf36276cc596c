package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/topology"
)

// defaultTime is the measurement time if the file gives neither operations nor time.
const defaultTime = unit.Duration(30 * time.Second)

// origin is the document of an experiment, with all settings applied.
type origin struct {
	root  *strict.Node
	dir   string // base of relative paths
	fast  bool
	files files
	cells []Cell // in the order of execution
	cloud topology.Topology
	nodes []string        // that run the database
	real  map[string]bool // real links, and possibly real ones without a placement
}

// Load reads an experiment file. sets are "path=value" as for --set, and override everything; fast applies the file's
// fast section. The error is strict.Problems, with all mistakes of the file and of the trials that it expands to.
func Load(path string, sets []string, fast bool) (Experiment, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Experiment{}, fmt.Errorf("read experiment: %w", err)
	}
	return Parse(path, data, sets, fast)
}

// Parse is Load for a text in memory; path is its origin.
func Parse(path string, data []byte, sets []string, fast bool) (Experiment, error) {
	root, err := strict.Parse(path, data)
	if err != nil {
		return Experiment{}, err
	}
	if root.Kind != strict.Map {
		return Experiment{}, strict.Problems{{Pos: root.Pos, Message: fmt.Sprintf("experiment must be a mapping, not %v", root.Kind),
			Hint: "start with name: ..."}}
	}
	overrides, problems := parseSets(sets)
	l := &loader{dir: filepath.Dir(path), problems: problems}
	e := l.load(root, overrides, fast)
	if !fast && len(l.problems) == 0 && root.Has("fast") {
		l.load(root, overrides, true) // reports mistakes under fast early
	}
	if len(l.problems) > 0 {
		return Experiment{}, l.problems.Sorted()
	}
	return e, nil
}

// assignment is a value for a path.
type assignment struct {
	path  string
	pos   strict.Pos
	value *strict.Node
}

func parseSets(sets []string) (list []assignment, problems strict.Problems) {
	for _, s := range sets {
		path, text, ok := strings.Cut(s, "=")
		name := "--set " + s
		pos := strict.Pos{Source: strict.NewSource(name, "")}
		value, err := strict.ParseValue(name, text)
		switch {
		case !ok:
			problems = append(problems, strict.Problem{Pos: pos, Message: "no = in setting",
				Hint: "write --set PATH=VALUE, such as --set scale=0.2"})
		case err != nil:
			problems = append(problems, asProblems(err, pos)...)
		default:
			list = append(list, assignment{strings.TrimSpace(path), pos, value})
		}
	}
	return list, problems
}

// loader builds an experiment from a document and collects problems.
type loader struct {
	dir      string
	fast     bool // the file's fast section is applied
	problems strict.Problems
}

func (l *loader) addError(err error) bool {
	l.problems = append(l.problems, asProblems(err, strict.Pos{})...)
	return err == nil
}

func asProblems(err error, pos strict.Pos) strict.Problems {
	switch err := err.(type) {
	case nil:
		return nil
	case strict.Problems:
		return err
	}
	return strict.Problems{{Pos: pos, Message: err.Error(), Err: err}}
}

func (l *loader) load(doc *strict.Node, overrides []assignment, fast bool) Experiment {
	root := doc.Clone()
	l.fast = fast
	apply := func(list []assignment) {
		for _, a := range list {
			l.addError(strict.Set(root, Experiment{}, a.path, a.pos, a.value))
		}
	}
	apply(overrides)
	if fast {
		apply(l.assignments(root.Get("fast")))
		apply(overrides)
		overrides = append(l.assignments(root.Get("fast")), overrides...)
	}
	var axes Matrix
	if m := root.Get("matrix"); m != nil && m.Kind != strict.Null {
		axes.DecodeNode(m, "matrix", func(p strict.Problem) { l.problems = append(l.problems, p) })
	}
	l.checkPinned(axes, overrides)
	l.checkAxes(root, axes)
	if len(l.problems) > 0 {
		l.decode(root) // reports further problems
		return Experiment{}
	}
	return l.expand(root, axes)
}

// assignments returns the entries of a fast section.
func (l *loader) assignments(n *strict.Node) (list []assignment) {
	if n == nil || n.Kind == strict.Null {
		return nil
	}
	var s Settings
	s.DecodeNode(n, "fast", func(p strict.Problem) { l.problems = append(l.problems, p) })
	for _, e := range n.Entries {
		list = append(list, assignment{e.Key, e.Pos, e.Value})
	}
	return list
}

// checkPinned reports settings that the matrix would overwrite.
func (l *loader) checkPinned(axes Matrix, set []assignment) {
	for _, a := range set {
		if slices.ContainsFunc(axes, func(x Axis) bool { return x.Path == a.path }) {
			l.problems = append(l.problems, strict.Problem{Pos: a.pos, Path: a.path,
				Message: fmt.Sprintf("%s varies in the matrix, which overrides this setting", a.path),
				Hint:    fmt.Sprintf("set matrix.%s to a list with one value", a.path)})
		}
	}
}

// decode decodes and checks one trial's document.
func (l *loader) decode(root *strict.Node) (Experiment, bool) {
	e := Experiment{origin: &origin{root: root, dir: l.dir, fast: l.fast}}
	ps := strict.Decode(root, &e, "")
	if !root.Has("topology") && !root.Has("database.cluster") {
		ps = append(ps, strict.Problem{Pos: root.Pos, Message: "topology is missing"})
	}
	if len(ps) > 0 {
		l.problems = append(l.problems, ps...)
		return e, false
	}
	ps = e.check()
	l.problems = append(l.problems, ps...)
	return e, len(ps) == 0
}

// JSON encodes the experiment with all defaults, under the keys of the file.
func (e Experiment) JSON() (json.RawMessage, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode experiment %s: %w", e.Name, err)
	}
	return data, nil
}

// files caches the files that an experiment names. Each is read once, so that a trial uses the content that was
// checked.
type files struct {
	mu   sync.Mutex
	read map[string][]byte // by path
}

func (f *files) get(path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if data, ok := f.read[path]; ok {
		return data, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if f.read == nil {
		f.read = map[string][]byte{}
	}
	f.read[path] = data
	return data, nil
}

// digests returns the SHA-256 sums of the read files, in hexadecimal, by path relative to dir.
func (f *files) digests(dir string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	sums := make(map[string]string, len(f.read))
	for path, data := range f.read {
		if rel, err := filepath.Rel(dir, path); err == nil {
			path = rel
		}
		sum := sha256.Sum256(data)
		sums[path] = hex.EncodeToString(sum[:])
	}
	return sums
}

// FileDigests returns the SHA-256 sums, in hexadecimal, of all files that the experiment and its trials name, by path
// relative to the experiment's file.
func (e Experiment) FileDigests() map[string]string {
	sums := map[string]string{}
	if e.origin == nil {
		return sums
	}
	maps.Copy(sums, e.origin.files.digests(e.origin.dir))
	for _, c := range e.origin.cells {
		maps.Copy(sums, c.Experiment.FileDigests())
	}
	return sums
}

// readFile reads a file that the experiment names.
func (e Experiment) readFile(path string) ([]byte, error) {
	if e.origin == nil {
		return os.ReadFile(path)
	}
	return e.origin.files.get(e.resolvePath(path))
}

// resolvePath resolves a path relative to the experiment's file.
func (e Experiment) resolvePath(file string) string {
	if file != "" && e.origin != nil && !filepath.IsAbs(file) {
		return filepath.Join(e.origin.dir, file)
	}
	return file
}
