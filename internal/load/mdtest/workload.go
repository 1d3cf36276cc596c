// Package mdtest is workloads on a directory tree, as package ycsb is those on records:
// which operations, on which paths, drawn from one seed. It does no I/O.
//
//	mdtest     rounds of one phase after the other, as mdtest (of IOR) has them: make a
//	           directory, create files in it, stat each, list it, remove each, remove it
//	namespace  the mix of operations that traces of production file systems have
//
// A tree has areas, one for each data node of a cluster: /own/AREA is for workers whose
// home that area is, /shared/AREA for all. Which server has an area is the tree's affair.
package mdtest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Names of workloads.
const (
	Phases    = "mdtest"
	Namespace = "namespace"
)

// Names are the workloads.
func Names() []string { return []string{Phases, Namespace} }

// Homes: which area a worker's own directories are in.
const (
	Near = "near" // the first, which is where the client stands
	All  = "all"  // the n-th worker's is the n-th
)

// Workload is a workload as its properties describe it, complete. Parse makes one.
type Workload struct {
	Name string `json:"name"`
	// Records are the files that are there when the measurement begins, at most Files of
	// them in a directory. A round of mdtest has Files files too.
	Records int64 `json:"records"`
	Files   int64 `json:"files"`
	// Shared is the share of the operations (of mdtest: rounds), and of the directories
	// that are there, that are in shared directories; 0..1.
	Shared float64 `json:"shared"`
	Home   string  `json:"home"`
	// Page is the most entries that a listing asks for.
	Page int `json:"page"`
	// Mix weighs namespace's operations; the weights need not sum to 1.
	Mix Mix `json:"mix"`
}

// Mix weighs operations.
type Mix struct {
	List   float64 `json:"list"`
	Stat   float64 `json:"stat"`
	Create float64 `json:"create"`
	Mkdir  float64 `json:"mkdir"`
	Rename float64 `json:"rename"`
	Remove float64 `json:"remove"`
}

// production is the mix of production traces: listing 47 %, open and stat 42 %, create and
// mkdir 3 % each, rename 2 %, delete 1 %, and stat for what is left of 100 %.
var production = Mix{List: 0.47, Stat: 0.44, Create: 0.03, Mkdir: 0.03, Rename: 0.02, Remove: 0.01}

// Kind is a kind of operation.
type Kind uint8

// Kinds of operation.
const (
	List Kind = iota
	Stat
	Create
	Mkdir
	Rename
	Remove
	Rmdir
	Kinds // how many there are
)

var kindNames = [Kinds]string{"LIST", "STAT", "CREATE", "MKDIR", "RENAME", "REMOVE", "RMDIR"}

// String is the operation's name in results.
func (k Kind) String() string {
	if k < Kinds {
		return kindNames[k]
	}
	return "?"
}

// Changes tells whether the operation changes the tree.
func (k Kind) Changes() bool { return k != List && k != Stat }

// Uses tells which kinds a workload has.
func (w *Workload) Uses(k Kind) bool {
	if w.Name == Phases {
		return k != Rename
	}
	return k < Rmdir && w.weights()[k] > 0
}

func (w *Workload) weights() [Rmdir]float64 {
	m := w.Mix
	return [Rmdir]float64{List: m.List, Stat: m.Stat, Create: m.Create, Mkdir: m.Mkdir, Rename: m.Rename, Remove: m.Remove}
}

func (w *Workload) total() (sum float64) {
	for _, weight := range w.weights() {
		sum += weight
	}
	return sum
}

// ErrWorkload marks properties that make no workload.
var ErrWorkload = errors.New("bad workload")

// Properties are what Parse knows, beside the records.
func Properties() []string {
	return append([]string{"files", "shared", "home", "page"}, proportions...)
}

var proportions = []string{"listproportion", "statproportion", "createproportion", "mkdirproportion", "renameproportion", "removeproportion"}

// Parse reads a workload from its name and properties. An error is ErrWorkload and joins
// all mistakes; those of a property begin with `property NAME: `.
func Parse(name string, records int64, properties map[string]string) (*Workload, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("%w: %w", ErrWorkload, fmt.Errorf("there is no workload %q on a directory tree", name))
	}
	w := &Workload{Name: name, Records: records, Files: 100, Home: Near, Page: 100, Mix: production}
	var errs []error
	for p := range properties {
		if !slices.Contains(Properties(), p) {
			errs = append(errs, fmt.Errorf("property %s: %s has no such property", p, name))
		}
		if name == Phases && slices.Contains(proportions, p) {
			errs = append(errs, fmt.Errorf("property %s: mdtest's phases have no mix", p))
		}
	}
	number := func(p string, low, high, missing float64) float64 {
		text, ok := properties[p]
		if !ok {
			return missing
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= low && v <= high) {
			errs = append(errs, fmt.Errorf("property %s: %q is no number from %v to %v", p, text, low, high))
		}
		return v
	}
	w.Files, w.Page = int64(number("files", 1, 1e6, 100)), int(number("page", 1, 10_000, 100))
	w.Shared = number("shared", 0, 1, 0)
	if h, ok := properties["home"]; ok {
		w.Home = h
		if h != Near && h != All {
			errs = append(errs, fmt.Errorf("property home: %q is neither near nor all", h))
		}
	}
	for i, weight := range []*float64{&w.Mix.List, &w.Mix.Stat, &w.Mix.Create, &w.Mix.Mkdir, &w.Mix.Rename, &w.Mix.Remove} {
		*weight = number(proportions[i], 0, 1, *weight)
	}
	if len(errs) == 0 && records < w.Dirs() {
		errs = append(errs, errors.New("property shared: own and shared directories need 2 records at least"))
	}
	if len(errs) == 0 && w.total() <= 0 {
		errs = append(errs, errors.New("no operation has a proportion"))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrWorkload, errors.Join(errs...))
	}
	return w, nil
}

// place is a directory: /shared/AREA/dir or /own/AREA/dir.
type place struct {
	shared bool
	area   int
	dir    string
}

func (p place) op(k Kind, name string) Op {
	return Op{Kind: k, Shared: p.shared, Area: p.area, Dir: p.dir, Name: name}
}

// Dirs is how many directories are there when the measurement begins. The i-th file is in
// the directory i modulo Dirs.
func (w *Workload) Dirs() int64 {
	n := (w.Records + w.Files - 1) / w.Files
	if w.Shared > 0 && w.Shared < 1 {
		n = max(n, 2) // one of each
	}
	return n
}

// sharedDirs is how many of them are shared, the first ones.
func (w *Workload) sharedDirs() int64 {
	n, all := int64(math.Round(w.Shared*float64(w.Dirs()))), w.Dirs()
	if w.Shared > 0 && w.Shared < 1 {
		n = min(max(n, 1), all-1)
	}
	return n
}

// directory is the d-th that is there, of so many areas.
func (w *Workload) directory(d int64, areas int) place {
	p := place{shared: d < w.sharedDirs(), dir: "d" + strconv.FormatInt(d, 10)}
	switch {
	case p.shared:
		p.area = int(d % int64(areas))
	case w.Home == All:
		p.area = int((d - w.sharedDirs()) % int64(areas))
	}
	return p
}

// filesIn is how many files the d-th directory has.
func (w *Workload) filesIn(d int64) int64 { return (w.Records - d + w.Dirs() - 1) / w.Dirs() }

func fileName(i int64) string { return "f" + strconv.FormatInt(i, 10) }

// Load is the creation of the n-th file that is there, its directories with it.
func (w *Workload) Load(n int64, areas int) *Op {
	op := w.directory(n%w.Dirs(), areas).op(Create, fileName(n/w.Dirs()))
	op.Parents = true
	return &op
}
