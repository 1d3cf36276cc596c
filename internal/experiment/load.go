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

// defaultTime is how long a trial measures when its file gives neither operations nor time.
const defaultTime = unit.Duration(30 * time.Second)

// origin is where an experiment came from: its document, with what was set put in.
type origin struct {
	root  *strict.Node
	dir   string // that files are relative to
	fast  bool
	files files
	cells []Cell // in the order of running
	cloud topology.Topology
	nodes []string        // that carry the database
	real  map[string]bool // links that are left as they are, or may be where places are not known
}

// Load reads an experiment file. sets are "path=value" as --set gives them and win over
// everything; fast applies what the file says under fast. Whatever is wrong with the file
// or with any trial that it expands to is in the error, strict.Problems.
func Load(path string, sets []string, fast bool) (Experiment, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Experiment{}, fmt.Errorf("reading the experiment: %w", err)
	}
	return Parse(path, data, sets, fast)
}

// Parse is Load for a text that is at hand already; path is where it came from.
func Parse(path string, data []byte, sets []string, fast bool) (Experiment, error) {
	root, err := strict.Parse(path, data)
	if err != nil {
		return Experiment{}, err
	}
	if root.Kind != strict.Map {
		return Experiment{}, strict.Problems{{Pos: root.Pos, Message: fmt.Sprintf("an experiment is a mapping, not %v", root.Kind), Hint: "begin with name: ..."}}
	}
	overrides, problems := parseSets(sets)
	l := &loader{dir: filepath.Dir(path), problems: problems}
	e := l.load(root, overrides, fast)
	if !fast && len(l.problems) == 0 && root.Has("fast") {
		l.load(root, overrides, true) // a mistake under fast is told before it is needed
	}
	if len(l.problems) > 0 {
		return Experiment{}, l.problems.Sorted()
	}
	return e, nil
}

// assignment is a value to put at a path.
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
			problems = append(problems, strict.Problem{Pos: pos, Message: "there is no = in it", Hint: "write --set PATH=VALUE, such as --set scale=0.2"})
		case err != nil:
			problems = append(problems, asProblems(err, pos)...)
		default:
			list = append(list, assignment{strings.TrimSpace(path), pos, value})
		}
	}
	return list, problems
}

// loader makes an experiment of a document and keeps what is wrong.
type loader struct {
	dir      string
	fast     bool // what the file says under fast is put in
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
		l.decode(root) // for whatever else is wrong
		return Experiment{}
	}
	return l.expand(root, axes)
}

// assignments are the entries of a fast section.
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

// checkPinned reports values that are set where the matrix would overwrite them.
func (l *loader) checkPinned(axes Matrix, set []assignment) {
	for _, a := range set {
		if slices.ContainsFunc(axes, func(x Axis) bool { return x.Path == a.path }) {
			l.problems = append(l.problems, strict.Problem{Pos: a.pos, Path: a.path, Message: fmt.Sprintf("%s varies in the matrix, which wins over this", a.path),
				Hint: fmt.Sprintf("set matrix.%s to a list of one", a.path)})
		}
	}
}

// decode reads one trial's document and checks it.
func (l *loader) decode(root *strict.Node) (Experiment, bool) {
	e := Experiment{origin: &origin{root: root, dir: l.dir, fast: l.fast}}
	if ps := strict.Decode(root, &e, ""); len(ps) > 0 {
		l.problems = append(l.problems, ps...)
		return e, false
	}
	ps := e.check()
	l.problems = append(l.problems, ps...)
	return e, len(ps) == 0
}

// JSON is the experiment with every default filled in, under the keys of the file.
func (e Experiment) JSON() (json.RawMessage, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("writing experiment %s as JSON: %w", e.Name, err)
	}
	return data, nil
}

// files are those that an experiment names. Each is read once: what a trial works with is
// what was checked, whatever becomes of the file meanwhile.
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

// digests are the SHA-256 sums of what was read, in hexadecimal, by the path relative to dir.
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

// FileDigests are the SHA-256 sums, in hexadecimal, of the files that the experiment and its
// trials name (matrices, traces, property files, descriptions of databases), by their path
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

// readFile reads a file that the experiment names, relative to it.
func (e Experiment) readFile(path string) ([]byte, error) {
	if e.origin == nil {
		return os.ReadFile(path)
	}
	return e.origin.files.get(e.resolvePath(path))
}

// resolvePath is where a file is that the experiment names.
func (e Experiment) resolvePath(file string) string {
	if file != "" && e.origin != nil && !filepath.IsAbs(file) {
		return filepath.Join(e.origin.dir, file)
	}
	return file
}
