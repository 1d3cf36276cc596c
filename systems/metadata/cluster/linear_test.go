package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"skerry/systems/metadata"
)

// sequential models the tree as a set of directories. Its outputs are error codes and listings.
var sequential = porcupine.Model{
	Init: func() any { return map[string]bool{"/": true, "/a": true, "/b": true, "/c": true} },
	Step: func(state, input, output any) (bool, any) {
		m, c := maps.Clone(state.(map[string]bool)), input.(metadata.Command)
		got := output.(string)
		return do1(m, c) == got || got == unknown, m
	},
	Equal:             func(a, b any) bool { return maps.Equal(a.(map[string]bool), b.(map[string]bool)) },
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " -> ", output) },
}

// unknown is the output of a command that may or may not have been executed, or may be executed later.
const unknown = "unknown"

func below(m map[string]bool, dir string) (names []string) {
	for p := range m {
		if parent, name := "", ""; p != "/" {
			if parent, name = metadata.Split(p); parent == dir {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func do1(m map[string]bool, c metadata.Command) string {
	parent, _ := metadata.Split(c.Path)
	to := ""
	if c.To != "" {
		to, _ = metadata.Split(c.To)
	}
	switch {
	case c.Op == metadata.Delegate:
		return ""
	case c.Op == metadata.Mkdir && m[c.Path]:
		return "exists"
	case c.Op == metadata.Mkdir && !m[parent], c.Op != metadata.Mkdir && !m[c.Path]:
		return "not_found"
	case c.Op == metadata.Mkdir:
		m[c.Path] = true
	case c.Op == metadata.List:
		return strings.Join(below(m, c.Path), " ")
	case c.Op == metadata.Rmdir && len(below(m, c.Path)) > 0:
		return "not_empty"
	case c.Op == metadata.Rmdir:
		delete(m, c.Path)
	case c.Op == metadata.Move && !m[to]:
		return "not_found"
	case c.Op == metadata.Move && m[c.To]:
		return "exists"
	case c.Op == metadata.Move:
		for p := range maps.Clone(m) {
			if metadata.Under(p, c.Path) {
				delete(m, p)
				m[c.To+strings.TrimPrefix(p, c.Path)] = true
			}
		}
	}
	return ""
}

func drawn(r *rand.Rand) (metadata.Command, error) {
	path := func() string {
		p := "/" + string("abc"[r.IntN(3)]) + "/" + string("xy"[r.IntN(2)])
		if r.IntN(3) == 0 {
			p += "/z"
		}
		return p
	}
	switch r.IntN(9) {
	case 0, 1:
		return metadata.Parse("mkdir " + path())
	case 2:
		return metadata.Parse("rmdir " + path())
	case 3, 4:
		return metadata.Parse("ls " + path()[:2])
	case 5:
		return metadata.Parse("ls " + path())
	case 6:
		to := []string{"g1", "g2", "g3", "g1,g2", "g2,g3", "g1,g2,g3"}[r.IntN(6)]
		if r.IntN(4) == 0 {
			return metadata.Parse("delegate /c " + to)
		}
		return metadata.Parse("delegate " + path() + " " + to)
	}
	return metadata.Parse("mv " + path() + " " + path())
}

// TestLinearizable runs clients that create, move, remove, list, delegate, split and merge directories on three
// servers, and one of them is killed and restarted. The histories must be linearizable. SKERRY_METADATA_HISTORIES is
// the number of histories; default 12.
func TestLinearizable(t *testing.T) {
	histories := 12
	if n, err := strconv.Atoi(os.Getenv("SKERRY_METADATA_HISTORIES")); err == nil {
		histories = n
	}
	for seed := range uint64(histories) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			linearizable(t, seed)
		})
	}
}

func linearizable(t *testing.T, seed uint64) {
	const lease, clients, commands = 50 * time.Millisecond, 4, 10
	w := newWorld(t)
	must(t, w.router(t, lease), "mkdir /a", "mkdir /b", "mkdir /c", "delegate /b g2", "delegate /c g1,g2,g3")
	ctx, end := context.WithCancel(t.Context())
	var keepers, running, restarts sync.WaitGroup
	keeper := w.router(t, lease)
	for name, m := range w {
		keepers.Go(func() { keeper.RunKeeper(ctx, name, m, slog.New(slog.DiscardHandler)) })
	}
	var clock, steps atomic.Int64
	victim := w[fmt.Sprintf("g%d", 1+seed%3)]
	victim.set(false, func(bool, []metadata.Command) bool {
		if steps.Add(1) == 30+int64(seed*7%40) {
			restarts.Go(victim.restart)
		}
		return false
	})
	parts := make([][]porcupine.Operation, clients)
	for i := range clients {
		r, random := w.router(t, lease), rand.New(rand.NewPCG(seed, uint64(i)))
		running.Go(func() {
			for len(parts[i]) < commands {
				c, err := drawn(random)
				if err != nil || c.Path == c.To {
					continue
				}
				o := porcupine.Operation{ClientId: i, Input: c, Call: clock.Add(1)}
				result := r.Do(ctx, []metadata.Command{c})[0]
				o.Return, o.Output = clock.Add(1), answered(c, result)
				if o.Output == unknown {
					o.Return, o.ClientId = math.MaxInt64, 100+i*commands+len(parts[i])
				}
				parts[i] = append(parts[i], o)
			}
		})
	}
	running.Wait()
	end()
	keepers.Wait()
	restarts.Wait()
	h := slices.Concat(parts...)
	if result := porcupine.CheckOperationsTimeout(sequential, h, patience); result == porcupine.Illegal {
		for _, o := range h {
			t.Logf("%d: %d-%d %s", o.ClientId, o.Call, o.Return, sequential.DescribeOperation(o.Input, o.Output))
		}
		t.Errorf("seed %d: not linearizable", seed)
	}
	lost := 0
	for _, o := range h {
		if o.Output == unknown {
			lost++
		}
	}
	t.Logf("seed %d: of %d answers, %d are unknown", seed, len(h), lost)
}

// answered translates a result for the model.
func answered(c metadata.Command, r metadata.Result) string {
	switch {
	case c.Op == metadata.Delegate:
		return ""
	case errors.Is(r.Err, metadata.ErrUnavailable):
		return unknown
	case r.Err != nil:
		return metadata.ErrorCode(r.Err)
	case c.Op != metadata.List:
		return ""
	}
	var names []string
	for _, e := range r.Entries {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}
