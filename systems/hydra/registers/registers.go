// Package registers has tests use rows of Hydra as registers, from many goroutines and at many
// places, and checks with Porcupine that what they saw is linearizable: that every operation can
// have happened at one moment between its call and its return.
package registers

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"skerry/systems/hydra/hydraclient"
)

// Operation on a register: it is read, or written with a value.
type Operation struct {
	Key   string
	Write bool
	Value int
}

// Draw is a random operation on one of a few registers. It hardly ever writes a value twice.
func Draw(r *rand.Rand, keys ...string) Operation {
	return Operation{Key: keys[r.IntN(len(keys))], Write: r.IntN(2) == 0, Value: 1 + r.IntN(1e9)}
}

// timeout bounds an operation.
const timeout = 3 * time.Second

// History is what was done. It may be used by many goroutines.
type History struct {
	began time.Time

	mu  sync.Mutex
	all []porcupine.Operation
}

// New begins a history.
func New() *History { return &History{began: time.Now()} }

// Len is how many operations were done.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// Do does an operation on a table's row of that key. Who are the goroutines: each does one
// after the other.
func (h *History) Do(ctx context.Context, c *hydraclient.Client, table string, who int, in Operation) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	op := porcupine.Operation{ClientId: who, Input: in, Call: time.Since(h.began).Nanoseconds()}
	var out outcome
	if in.Write {
		out = write(ctx, c, table, in)
	} else {
		out = read(ctx, c, table, in.Key)
	}
	op.Output, op.Return = out, time.Since(h.began).Nanoseconds()
	if out.doubt { // it may take effect at any later time
		op.Return = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, op)
}

func write(ctx context.Context, c *hydraclient.Client, table string, in Operation) outcome {
	_, err := c.Put(ctx, table, in.Key, map[string]int{"v": in.Value})
	doubt := errors.Is(err, hydraclient.ErrInDoubt) || errors.Is(err, hydraclient.ErrNotReached)
	return outcome{doubt: doubt, failed: err != nil && !doubt}
}

func read(ctx context.Context, c *hydraclient.Client, table, key string) outcome {
	row, err := c.Get(ctx, table, key)
	var v struct{ V int }
	switch {
	case errors.Is(err, hydraclient.ErrNotFound):
		return outcome{}
	case err != nil || json.Unmarshal(row.Value, &v) != nil:
		return outcome{failed: true}
	}
	return outcome{value: v.V}
}

// Check fails a test when a register's history is not linearizable. Those that cannot be
// checked within patience are only logged.
func (h *History) Check(t testing.TB, patience time.Duration) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	undecided := 0
	for _, part := range model.Partition(h.all) {
		switch porcupine.CheckOperationsTimeout(model, part, patience) {
		case porcupine.Illegal:
			t.Errorf("%s is not linearizable: %+v", part[0].Input.(Operation).Key, part)
		case porcupine.Unknown:
			undecided++
		}
	}
	if undecided > 0 {
		t.Logf("%d registers could not be checked in time", undecided)
	}
}

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
