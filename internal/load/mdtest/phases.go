package mdtest

import "strconv"

// round is a round of mdtest's phases under way. The zero round is over.
type round struct {
	place            // of the files
	number    int    // from 1
	files     int64  // to be created
	made      string // the directory that the round makes, in the same area
	phase     phase
	at        int64    // operations of the phase that were done
	names     []string // of files that were created
	leftovers bool     // something may be there that the round knows nothing of
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

// phaseOp is the worker's next operation. In own directories a round's files are in the
// directory that it makes, in shared ones all workers' are in one.
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

// done goes on to what is to be done next.
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

// nextPhase begins the next phase, or ends the round.
func (r *round) nextPhase(on bool) {
	r.at = 0
	if r.phase++; !on {
		r.phase = over
	}
}
