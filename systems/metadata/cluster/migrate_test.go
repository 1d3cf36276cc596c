package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
)

// TestMigrateWhileChanging moves a directory while a client changes it between any two requests of the copy, as
// long as nothing is locked. The changes do not wait. The resulting tree equals that of servers without the move.
func TestMigrateWhileChanging(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 9))
			w, still := newWorld(t), newWorld(t)
			client, other := w.router(t, 0), still.router(t, 0)
			same := func(line string) bool {
				got, want := do(t, client, line), do(t, other, line)
				if g, w := metadata.ErrorCode(got.Err), metadata.ErrorCode(want.Err); g != w {
					t.Errorf("%s: %v, want %v", line, got.Err, want.Err)
				}
				return want.Err == nil
			}
			for _, line := range []string{"mkdir /d", "mkdir /out", "mkdir /d/far", "delegate /d/far g3", "write /d/far/f far"} {
				same(line)
			}
			for i := range 700 { // three exchanges in one directory
				same(fmt.Sprintf("write /d/f%d %d", i, i))
			}
			change := func() string { return randomChange(random) }
			for range 60 {
				one(t, same, change)
			}
			var mu sync.Mutex
			changed, inside := 0, false
			w["g2"].set(false, func(before bool, _ []metadata.Command) bool {
				mu.Lock()
				defer mu.Unlock()
				locks, _ := w["g1"].store().Transactions()
				locked := slices.ContainsFunc(locks, func(t metadata.Txn) bool { return !t.Watching })
				if !before || inside || locked || changed >= 400 {
					return false
				}
				inside = true
				for range 20 {
					if one(t, same, change) {
						changed++
					}
				}
				inside = false
				return false
			})
			must(t, w.router(t, 0), "delegate /d g2")
			w["g2"].set(false, nil)
			if changed < 20 {
				t.Errorf("%d concurrent changes", changed)
			}
			if diff := cmp.Diff(still.image(t), w.image(t)); diff != "" {
				t.Errorf("after %d changes: %s", changed, diff)
			}
			if left := w.orphans(); len(left) > 0 {
				t.Errorf("orphans: %v", left)
			}
		})
	}
}

// randomChange returns a change in or around /d.
func randomChange(random *rand.Rand) string {
	path := func() string {
		p := "/d"
		for range 1 + random.IntN(3) {
			p += fmt.Sprintf("/%d", random.IntN(5))
		}
		return p
	}
	p := path()
	switch random.IntN(14) {
	case 0, 1:
		return "mkdir -p -m 750 " + p
	case 2, 3:
		return fmt.Sprintf("write %s %d", p, random.IntN(1000))
	case 4:
		return "rm -r " + p
	case 5:
		return "rmdir " + p
	case 6:
		return "chmod 700 " + p
	case 7:
		return "mv " + p + " " + path() + "x"
	case 8:
		return fmt.Sprintf("mv %s /out/%d", p, random.IntN(5))
	case 9:
		return fmt.Sprintf("mv /out/%d %s", random.IntN(5), p)
	case 10:
		return "delegate " + p + " g3"
	case 11:
		return fmt.Sprintf("rm /d/f%d", random.IntN(700))
	case 12:
		return "chmod 711 /d"
	}
	return fmt.Sprintf("write /d/f%d new", random.IntN(700))
}

// one makes a change in both worlds and skips paths that are invalid commands.
func one(t *testing.T, same func(line string) bool, change func() string) bool {
	t.Helper()
	line := change()
	if _, err := metadata.Parse(line); err != nil {
		return false
	}
	return same(line)
}
