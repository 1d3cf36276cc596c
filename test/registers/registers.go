// Package registers is a test helper that uses rows of Hydra as registers from many goroutines,
// and checks with Porcupine that their history is linearizable.
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

// Operation reads a register, or writes Value to it.
type Operation struct {
	Key   string
	Write bool
	Value int
}

// Draw returns a random operation. Written values rarely repeat.
func Draw(r *rand.Rand, keys ...string) Operation {
	return Operation{Key: keys[r.IntN(len(keys))], Write: r.IntN(2) == 0, Value: 1 + r.IntN(1e9)}
}

const timeout = 3 * time.Second

// History records operations. It is safe for concurrent use.
type History struct {
	began time.Time

	mu  sync.Mutex
	all []porcupine.Operation
}

func New() *History { return &History{began: time.Now()} }

func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// Do executes an operation on a row of table. Each goroutine, numbered by who, does one at a time.
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
	if out.doubt { // it may take effect later
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

// Check fails the test if a register's history is not linearizable. Registers that cannot be checked
// within patience are logged.
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

type outcome struct {
	value         int
	failed, doubt bool
}

// model: a read returns the last write, 0 before the first. Failed operations are ignored.
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
