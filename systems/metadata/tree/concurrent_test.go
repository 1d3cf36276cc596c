package tree_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
	"skerry/systems/metadata/tree"
)

// sequential is the model for Porcupine: a history is linearizable if some order of its operations gives all its
// answers.
var sequential = porcupine.Model{
	Init: func() any { return newModel() },
	Step: func(state, input, output any) (bool, any) {
		m, c := maps.Clone(state.(model)), input.(metadata.Command)
		want := modelled(c, m.do(c))
		return cmp.Equal(want, output.(metadata.Result), byText), m
	},
	Equal: func(a, b any) bool { return maps.Equal(a.(model), b.(model)) },
	DescribeOperation: func(input, output any) string {
		r := output.(metadata.Result)
		return fmt.Sprint(input.(metadata.Command), " -> ", paths(r), " ", r.Err)
	},
}

// history runs concurrent commands of clients and records their start and end.
func history(n tree.Namespace, seed uint64, clients, commands int,
	draw func(r *rand.Rand, client, now int) metadata.Command) []porcupine.Operation {
	var clock atomic.Int64
	var wg sync.WaitGroup
	parts := make([][]porcupine.Operation, clients)
	gate := make(chan struct{})
	for i := range clients {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			<-gate
			for k := range commands {
				c := draw(r, i, k)
				call := clock.Add(1)
				result := modelled(c, n.Do(c))
				parts[i] = append(parts[i], porcupine.Operation{ClientId: i, Input: c, Call: call, Output: result, Return: clock.Add(1)})
			}
		})
	}
	close(gate)
	wg.Wait()
	return slices.Concat(parts...)
}

func TestLinearizable(t *testing.T) {
	for name, fresh := range implementations {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(300) {
				n := fresh()
				for _, line := range []string{"mkdir -p /a/b/c", "mkdir -p /b/a", "create /a/c"} {
					do(t, n, line)
				}
				if tr, ok := n.(*tree.Tree); ok && seed%4 > 0 {
					tr.SetYield(yields(seed))
				}
				draw := anything
				if seed%2 == 0 {
					draw = aroundMoves
				}
				h := history(n, seed, 4, 6, draw)
				model := sequential
				model.Init = func() any {
					m := newModel()
					for _, line := range []string{"mkdir -p /a/b/c", "mkdir -p /b/a", "create /a/c"} {
						c, _ := metadata.Parse(line)
						m.do(c)
					}
					return m
				}
				if result := porcupine.CheckOperationsTimeout(model, h, 30*time.Second); result == porcupine.Illegal {
					for _, o := range h {
						t.Logf("%d-%d %s", o.Call, o.Return, model.DescribeOperation(o.Input, o.Output))
					}
					t.Fatalf("seed %d: not linearizable", seed)
				}
			}
		})
	}
}

func anything(r *rand.Rand, client, now int) metadata.Command {
	return random(r, int64(1000*client+now))
}

// aroundMoves makes the first client move a directory between two others, which the other clients read.
func aroundMoves(r *rand.Rand, client, now int) metadata.Command {
	from, to, names := "/a/b", "/b/b", "wxyz"
	if r.IntN(2) == 0 {
		from, to = to, from
	}
	c := metadata.Command{Op: metadata.Move, Path: from, To: to, Time: int64(1000*client + now)}
	switch {
	case client == 0:
		return c
	case r.IntN(4) == 0:
		c.Op, c.Path, c.To, c.Mode = metadata.Mkdir, from+"/"+string(names[r.IntN(4)]), "", metadata.DefaultDirMode
	case r.IntN(2) == 0:
		c.Op, c.Path, c.To, c.Limit = metadata.List, []string{from[:2], from, from}[r.IntN(3)], "", 9
	default:
		c.Op, c.Path, c.To = metadata.Stat, from+[]string{"", "/c"}[r.IntN(2)], ""
	}
	return c
}

// yields returns a function that randomly yields the processor.
func yields(seed uint64) func() {
	var calls atomic.Uint64
	return func() {
		if (calls.Add(1)*0x9e3779b97f4a7c15+seed)>>61 < seed%4 {
			runtime.Gosched()
		}
	}
}

// TestOwnSubtrees runs clients in directories of their own, each compared with its own model, while others create,
// move and remove directories around them.
func TestOwnSubtrees(t *testing.T) {
	for name, fresh := range implementations {
		t.Run(name, func(t *testing.T) {
			n := fresh()
			done := disturb(t, n)
			var wg sync.WaitGroup
			for client := range 4 {
				own := fmt.Sprintf("/own/%d", client)
				do(t, n, "mkdir -p "+own)
				r := rand.New(rand.NewPCG(7, uint64(client)))
				wg.Go(func() {
					m := newModel()
					setup := metadata.Command{Op: metadata.Mkdir, Path: own, Parents: true, Mode: metadata.DefaultDirMode}
					m.do(setup)
					for i := range 1500 {
						c := random(r, int64(i))
						c.Path = own + c.Path
						if c.Op == metadata.Move {
							c.To = own + c.To
						}
						if c.Check() != nil {
							continue
						}
						if diff := cmp.Diff(m.do(c), modelled(c, n.Do(c)), byText); diff != "" {
							t.Errorf("client %d, step %d, %s: %s", client, i, c, diff)
							return
						}
					}
				})
			}
			wg.Wait()
			done()
		})
	}
}

// disturb starts clients that change and read everything outside /own; done stops them.
func disturb(t *testing.T, n tree.Namespace) (done func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for client := range 3 {
		r := rand.New(rand.NewPCG(8, uint64(client)))
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				c := random(r, int64(i))
				n.Do(c)
				n.Do(metadata.Command{Op: metadata.List, Path: "/", Limit: 100})
				n.Do(metadata.Command{Op: metadata.Find, Path: "/", Limit: 50, MaxDepth: -1})
			}
		})
	}
	return func() {
		close(stop)
		wg.Wait()
	}
}

// TestReadsDuringChanges runs other commands in the middle of a read. The read must not see an entry at a path
// that the entry never had.
func TestReadsDuringChanges(t *testing.T) {
	for point := range 12 {
		n := tree.New()
		do(t, n, "mkdir -p /a/b/c")
		do(t, n, "mkdir /z")
		calls := 0
		n.SetYield(func() {
			if calls++; calls == point+1 {
				n.SetYield(nil)
				do(t, n, "mv /a/b /z/b")
				do(t, n, "mkdir /z/b/new")
			}
		})
		c := metadata.Command{Op: metadata.List, Path: "/a/b", Limit: 10}
		if r := n.Do(c); r.Err == nil && paths(r) != "c" {
			t.Errorf("at point %d: entries of /a/b are %s", point, paths(r))
		}
	}
}
