// Package mdtest generates workloads on a directory tree: operations and paths, drawn from a seed.
// It does no I/O.
//
//	mdtest     rounds of phases, as in mdtest (of IOR): create a directory, create files
//	           in it, stat each, list the directory, remove each, remove the directory
//	namespace  the mix of operations in traces of production file systems
//
// A tree has one area for each data node of a cluster. /own/AREA is for workers with this home
// area, /shared/AREA for all workers. The tree decides which server holds an area.
package mdtest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

const (
	Phases    = "mdtest"
	Namespace = "namespace"
)

// Names returns the names of all workloads.
func Names() []string { return []string{Phases, Namespace} }

const (
	Near = "near" // the first area, where the client is
	All  = "all"  // the n-th area for the n-th worker
)

// Workload describes a workload completely. Parse creates it.
type Workload struct {
	Name string `json:"name"`
	// Records is the number of files at the start of the measurement, with at most Files in a
	// directory. A round of mdtest creates Files files, too.
	Records int64 `json:"records"`
	Files   int64 `json:"files"`
	// Shared is the share of operations (mdtest: rounds) and of directories that are shared, 0 to
	// 1.
	Shared float64 `json:"shared"`
	Home   string  `json:"home"`
	// Page is the maximum number of entries of a listing.
	Page int `json:"page"`
	// Mix is the mix of namespace. The weights need not sum to 1.
	Mix Mix `json:"mix"`
}

// Mix holds the weights of operations.
type Mix struct {
	List   float64 `json:"list"`
	Stat   float64 `json:"stat"`
	Create float64 `json:"create"`
	Mkdir  float64 `json:"mkdir"`
	Rename float64 `json:"rename"`
	Remove float64 `json:"remove"`
}

// production is the mix of production traces: list 47 %, open and stat 42 %, create and mkdir 3 %
// each, rename 2 %, delete 1 %. stat also gets the rest.
var production = Mix{List: 0.47, Stat: 0.44, Create: 0.03, Mkdir: 0.03, Rename: 0.02, Remove: 0.01}

type Kind uint8

const (
	List Kind = iota
	Stat
	Create
	Mkdir
	Rename
	Remove
	Rmdir
	Kinds // number of kinds
)

var kindNames = [Kinds]string{"LIST", "STAT", "CREATE", "MKDIR", "RENAME", "REMOVE", "RMDIR"}

// String returns the operation's name in results.
func (k Kind) String() string {
	if k < Kinds {
		return kindNames[k]
	}
	return "?"
}

// Changes reports whether the operation changes the tree.
func (k Kind) Changes() bool { return k != List && k != Stat }

// Uses reports whether the workload has operations of kind k.
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

// ErrWorkload marks invalid properties.
var ErrWorkload = errors.New("invalid workload")

func propertyNames() []string {
	return append([]string{"files", "shared", "home", "page"}, proportions...)
}

var proportions = []string{
	"listproportion", "statproportion", "createproportion", "mkdirproportion", "renameproportion", "removeproportion",
}

// Parse creates a workload from its name and properties. The error wraps ErrWorkload and joins all
// mistakes; those of a property begin with `property NAME: `.
func Parse(name string, records int64, properties map[string]string) (*Workload, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("%w: %w", ErrWorkload, fmt.Errorf("unknown workload %q on a directory tree", name))
	}
	w := &Workload{Name: name, Records: records, Files: 100, Home: Near, Page: 100, Mix: production}
	var errs []error
	for p := range properties {
		if !slices.Contains(propertyNames(), p) {
			errs = append(errs, fmt.Errorf("property %s: unknown for workload %s", p, name))
		}
		if name == Phases && slices.Contains(proportions, p) {
			errs = append(errs, fmt.Errorf("property %s: workload mdtest has no mix", p))
		}
	}
	number := func(p string, low, high, missing float64) float64 {
		text, ok := properties[p]
		if !ok {
			return missing
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= low && v <= high) {
			errs = append(errs, fmt.Errorf("property %s: %q is not a number between %v and %v", p, text, low, high))
		}
		return v
	}
	w.Files, w.Page = int64(number("files", 1, 1e6, 100)), int(number("page", 1, 10_000, 100))
	w.Shared = number("shared", 0, 1, 0)
	if h, ok := properties["home"]; ok {
		w.Home = h
		if h != Near && h != All {
			errs = append(errs, fmt.Errorf("property home: unknown %q, want near or all", h))
		}
	}
	for i, weight := range []*float64{&w.Mix.List, &w.Mix.Stat, &w.Mix.Create, &w.Mix.Mkdir, &w.Mix.Rename, &w.Mix.Remove} {
		*weight = number(proportions[i], 0, 1, *weight)
	}
	if len(errs) == 0 && records < w.Dirs() {
		errs = append(errs, errors.New("property shared: own and shared directories need at least 2 records"))
	}
	if len(errs) == 0 && w.total() <= 0 {
		errs = append(errs, errors.New("all proportions are 0"))
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

// Dirs is the number of directories at the start of the measurement. File i is in directory i
// modulo Dirs.
func (w *Workload) Dirs() int64 {
	n := (w.Records + w.Files - 1) / w.Files
	if w.Shared > 0 && w.Shared < 1 {
		n = max(n, 2) // at least one of each
	}
	return n
}

func (w *Workload) sharedDirs() int64 {
	n, all := int64(math.Round(w.Shared*float64(w.Dirs()))), w.Dirs()
	if w.Shared > 0 && w.Shared < 1 {
		n = min(max(n, 1), all-1)
	}
	return n
}

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

func (w *Workload) filesIn(d int64) int64 { return (w.Records - d + w.Dirs() - 1) / w.Dirs() }

func fileName(i int64) string { return "f" + strconv.FormatInt(i, 10) }

// Load returns the operation that creates the n-th file, with its directories.
func (w *Workload) Load(n int64, areas int) *Op {
	op := w.directory(n%w.Dirs(), areas).op(Create, fileName(n/w.Dirs()))
	op.Parents = true
	return &op
}
