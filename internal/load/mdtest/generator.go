package mdtest

import (
	"math/rand/v2"
	"strconv"
)

type Op struct {
	Kind Kind
	// Shared and Area locate Dir: /shared/AREA/Dir or /own/AREA/Dir. Areas are numbered from 0, the
	// nearest.
	Shared bool
	Area   int
	Dir    string // "" for the area's own directory
	Name   string // entry in Dir; "" for Dir itself
	To     string // Rename: the new name in Dir
	Page   int    // List: maximum number of entries per answer
	// Parents means that missing parent directories are created.
	Parents bool
}

// Generator generates the operations of one worker. The k-th operation depends only on the seed,
// the worker, the number of areas and the outcomes of earlier operations.
type Generator struct {
	w      *Workload
	worker int
	areas  int
	r      *rand.Rand
	prefix string // of names that this worker creates
	made   int    // names used so far
	op     Op

	live  []file // namespace: created here and not removed
	at    int    // index in live of the current operation's file
	round round  // mdtest
}

type file struct {
	place
	name string
}

// NewGenerator returns a generator for one worker, numbered from 0, on a tree with at least one
// area.
func (w *Workload) NewGenerator(seed uint64, worker, areas int) *Generator {
	return &Generator{
		w: w, worker: worker, areas: areas, prefix: "w" + strconv.Itoa(worker) + ".",
		r: rand.New(rand.NewPCG(seed, uint64(worker))),
	}
}

// Next returns the worker's next operation, valid until the following call. Done must be called
// when the operation has ended.
func (g *Generator) Next() *Op {
	if g.w.Name == Phases {
		g.op = g.phaseOp()
	} else {
		g.op = g.mixedOp()
	}
	return &g.op
}

// Done reports the outcome of the last operation. The name of an operation that failed or is in
// doubt is not used again.
func (g *Generator) Done(ok bool) {
	if g.w.Name == Phases {
		g.round.done(g.op, ok)
		return
	}
	switch k := g.op.Kind; {
	case k == Create && ok:
		g.live = append(g.live, file{place{g.op.Shared, g.op.Area, g.op.Dir}, g.op.Name})
	case k == Rename && ok:
		g.live[g.at].name = g.op.To
	case k == Rename, k == Remove:
		last := len(g.live) - 1
		g.live[g.at] = g.live[last]
		g.live = g.live[:last]
	}
}

func (g *Generator) nextName() string {
	g.made++
	return g.prefix + strconv.Itoa(g.made)
}

func (g *Generator) home() int {
	if g.w.Home == All {
		return g.worker % g.areas
	}
	return 0
}

// mixedOp returns an operation of the mix. It replaces a rename or removal by a creation if the
// worker has no file.
func (g *Generator) mixedOp() Op {
	k := g.drawKind()
	if (k == Rename || k == Remove) && len(g.live) == 0 {
		k = Create
	}
	if k == Rename || k == Remove {
		g.at = g.r.IntN(len(g.live))
		op := g.live[g.at].op(k, g.live[g.at].name)
		if k == Rename {
			op.To = g.nextName()
		}
		return op
	}
	d := g.drawDirectory()
	at := g.w.directory(d, g.areas)
	switch k {
	case List:
		op := at.op(List, "")
		op.Page = g.w.Page
		return op
	case Stat:
		return at.op(Stat, fileName(g.r.Int64N(g.w.filesIn(d))))
	}
	return at.op(k, g.nextName())
}

func (g *Generator) drawKind() Kind {
	u, last := g.r.Float64()*g.w.total(), List
	for k, w := range g.w.weights() {
		if w == 0 {
			continue
		}
		last = Kind(k)
		if u < w {
			break
		}
		u -= w
	}
	return last
}

// drawDirectory draws an existing directory: a shared one, or an own one in the worker's home area.
// If that area has none, it draws any own one.
func (g *Generator) drawDirectory() int64 {
	shared := g.w.sharedDirs()
	own := g.w.Dirs() - shared
	if g.r.Float64() < g.w.Shared {
		return g.r.Int64N(shared)
	}
	if g.w.Home == Near {
		return shared + g.r.Int64N(own)
	}
	areas, home := int64(g.areas), int64(g.home())
	at := (own - home + areas - 1) / areas // numbered home, home + areas, home + 2 areas ...
	if at <= 0 {
		return shared + g.r.Int64N(own)
	}
	return shared + home + areas*g.r.Int64N(at)
}

// round is a round of mdtest's phases. The zero round is over.
type round struct {
	place            // of the files
	number    int    // from 1
	files     int64  // number to create
	made      string // directory created by the round, in the same area
	phase     phase
	at        int64    // completed operations of the phase
	names     []string // of created files
	leftovers bool     // files may exist that the round does not know
}

type phase uint8

const (
	over phase = iota
	making
	creating
	statting
	listing
	removing
	unmaking
)

// phaseOp returns the worker's next operation. An own round has its files in the directory that it
// creates. Shared rounds of all workers use the same directory.
func (g *Generator) phaseOp() Op {
	r := &g.round
	if r.phase == over {
		g.beginRound()
	}
	inArea := place{shared: r.shared, area: r.area}
	switch r.phase {
	case making:
		op := inArea.op(Mkdir, r.made)
		op.Parents = true
		return op
	case creating:
		return r.op(Create, r.made+"."+strconv.FormatInt(r.at, 10))
	case statting:
		return r.op(Stat, r.names[r.at])
	case listing:
		op := r.op(List, "")
		op.Page = g.w.Page
		return op
	case removing:
		return r.op(Remove, r.names[r.at])
	}
	return inArea.op(Rmdir, r.made)
}

func (g *Generator) beginRound() {
	r := round{number: g.round.number + 1, phase: making, names: g.round.names[:0]}
	r.made = g.prefix + "r" + strconv.Itoa(r.number)
	r.files = g.w.Files
	if r.shared = g.r.Float64() < g.w.Shared; r.shared {
		r.area = g.r.IntN(g.areas)
	} else {
		r.area, r.dir = g.home(), r.made
	}
	g.round = r
}

func (r *round) done(op Op, ok bool) {
	r.at++
	switch r.phase {
	case making:
		r.nextPhase(ok)
	case creating:
		if ok {
			r.names = append(r.names, op.Name)
		}
		r.leftovers = r.leftovers || !ok
		if r.at == r.files {
			r.nextPhase(len(r.names) > 0)
		}
	case statting, listing:
		if r.at == int64(len(r.names)) {
			r.nextPhase(true)
		}
	case removing:
		r.leftovers = r.leftovers || !ok
		if r.at == int64(len(r.names)) {
			r.nextPhase(r.shared || !r.leftovers)
		}
	case unmaking:
		r.nextPhase(false)
	}
}

func (r *round) nextPhase(on bool) {
	r.at = 0
	if r.phase++; !on {
		r.phase = over
	}
}
