package audit

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Linearizability is the result of CheckLinearizable.
type Linearizability struct {
	Keys       int // records
	Operations int
	// Violated are the registers without a valid order of operations. Undecided are those that
	// exceeded the time limit.
	Violated, Undecided []Register
	// Strange counts reads of values without a version. The check leaves them out.
	Strange int

	shown []porcupine.Operation
	model porcupine.Model
}

// Register is a field of a record.
type Register struct {
	Number int64
	Field  int
}

const absent = Version(math.MaxUint64)

type registerInput struct {
	register Register
	read     bool
	version  Version // of a write
}

// maxShown bounds the operations on Porcupine's page. Browsers cannot open larger pages.
const maxShown = 4000

// CheckLinearizable reports whether every operation of a history can have happened at one moment
// between its call and its return. Each field of each record is a separate register; Porcupine
// searches for the moments. The initial version of loaded records is 0; other records are absent.
// describe names a register.
func CheckLinearizable(history []Operation, loaded func(number int64) bool, fields int, timeLimit time.Duration,
	describe func(Register) string,
) Linearizability {
	by, r := splitRegisters(history, fields)
	r.model = registerModel(loaded, describe)
	order := make([]Register, 0, len(by))
	for reg := range by {
		order = append(order, reg)
	}
	slices.SortFunc(order, func(a, b Register) int { // the longest histories first
		return cmp.Or(cmp.Compare(len(by[b]), len(by[a])), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Field, b.Field))
	})
	deadline := time.Now().Add(timeLimit)
	for _, reg := range order {
		left := time.Until(deadline)
		if left <= 0 { // Porcupine takes 0 as no limit
			r.Undecided = append(r.Undecided, reg)
			continue
		}
		switch porcupine.CheckOperationsTimeout(r.model, by[reg], left) {
		case porcupine.Illegal:
			r.Violated = append(r.Violated, reg)
		case porcupine.Unknown:
			r.Undecided = append(r.Undecided, reg)
		}
	}
	r.selectShown(order, by)
	return r
}

// selectShown selects the registers for the page: the violated ones, then those with most
// operations.
func (r *Linearizability) selectShown(order []Register, by map[Register][]porcupine.Operation) {
	for _, reg := range append(slices.Clone(r.Violated), order...) {
		if len(r.shown) > 0 && len(r.shown)+len(by[reg]) > maxShown {
			continue
		}
		r.shown = append(r.shown, by[reg]...)
		delete(by, reg)
	}
}

// WritePage writes Porcupine's page.
func (r Linearizability) WritePage(w io.Writer) error {
	_, info := porcupine.CheckOperationsVerbose(r.model, r.shown, 10*time.Second)
	if err := porcupine.Visualize(r.model, info, w); err != nil {
		return fmt.Errorf("draw the history: %w", err)
	}
	return nil
}

// splitRegisters splits operations by field. An operation without a return ends after all others.
func splitRegisters(history []Operation, fields int) (map[Register][]porcupine.Operation, Linearizability) {
	by, r := map[Register][]porcupine.Operation{}, Linearizability{Operations: len(history)}
	keys := map[int64]bool{}
	end := int64(0)
	for _, o := range history {
		end = max(end, o.Call, o.Return)
	}
	for _, o := range history {
		keys[o.Number] = true
		if o.Strange {
			r.Strange++
			continue
		}
		ret := o.Return
		if o.Open {
			ret = end + 1
		}
		add := func(field int, v Version) {
			reg := Register{o.Number, field}
			by[reg] = append(by[reg], porcupine.Operation{
				ClientId: o.Worker, Call: o.Call, Return: ret, Input: registerInput{reg, o.Read, v}, Output: v,
			})
		}
		if o.Missing {
			for f := range fields {
				add(f, absent)
			}
			continue
		}
		for i, f := range o.Fields {
			add(f, o.Versions[i])
		}
	}
	r.Keys = len(keys)
	return by, r
}

// registerModel is a register per partition; its state is a version.
func registerModel(loaded func(int64) bool, describe func(Register) string) porcupine.Model {
	type state struct {
		version Version
		known   bool // false in the initial state, which does not depend on the register
	}
	now := func(s state, r Register) Version {
		switch {
		case s.known:
			return s.version
		case loaded(r.Number):
			return 0
		}
		return absent
	}
	return porcupine.Model{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			by := map[Register][]porcupine.Operation{}
			var order []Register
			for _, o := range ops {
				reg := o.Input.(registerInput).register
				if by[reg] == nil {
					order = append(order, reg)
				}
				by[reg] = append(by[reg], o)
			}
			out := make([][]porcupine.Operation, len(order))
			for i, reg := range order {
				out[i] = by[reg]
			}
			return out
		},
		Init: func() any { return state{} },
		Step: func(s, in, out any) (bool, any) {
			i := in.(registerInput)
			if !i.read {
				return true, state{i.version, true}
			}
			return out.(Version) == now(s.(state), i.register), s
		},
		DescribeOperation: func(in, out any) string {
			i := in.(registerInput)
			if i.read {
				return fmt.Sprintf("read %s: %s", describe(i.register), formatVersion(out.(Version)))
			}
			return fmt.Sprintf("write %s: %s", describe(i.register), formatVersion(i.version))
		},
		DescribeState: func(s any) string {
			if v := s.(state); v.known {
				return formatVersion(v.version)
			}
			return "initial"
		},
	}
}

func formatVersion(v Version) string {
	if v == absent {
		return "missing"
	}
	return v.String()
}
