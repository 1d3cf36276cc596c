package mdtest

import (
	"math"
	"strconv"
)

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
