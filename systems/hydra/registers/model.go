package registers

import "github.com/anishathalye/porcupine"

// outcome of an operation: what was read, 0 where nothing was; that it certainly did not
// happen; that nobody knows.
type outcome struct {
	value         int
	failed, doubt bool
}

// model is what a register does: a read sees the last write, 0 before the first. What did
// not happen is no part of it.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := map[string][]porcupine.Operation{}
		for _, o := range history {
			if !o.Output.(outcome).failed {
				key := o.Input.(Operation).Key
				by[key] = append(by[key], o)
			}
		}
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		in, out := input.(Operation), output.(outcome)
		if in.Write {
			return true, in.Value
		}
		return out.value == state.(int), state
	},
}
