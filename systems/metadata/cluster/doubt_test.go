package cluster_test

import (
	"errors"
	"testing"
	"time"

	"skerry/systems/metadata"
)

// TestCoordinatorAway loses the coordinator when the other server has promised: what that
// holds stays locked, what it does not goes on, and it ends when the coordinator is back, or
// by hand.
func TestCoordinatorAway(t *testing.T) {
	const lease = 20 * time.Millisecond
	for _, end := range []string{"back", "abort", "commit"} {
		t.Run(end, func(t *testing.T) {
			w := newWorld(t)
			r := w.router(t, lease)
			must(t, r, "mkdir /b", "delegate /b g2", "mkdir /b/d", "write /f text")
			w["g2"].set(false, func(before bool, _ []metadata.Command) bool {
				if !before {
					w["g1"].set(true, nil)
				}
				return false
			})
			if got := do(t, r, "mv /f /b/f"); !errors.Is(got.Err, metadata.ErrUnavailable) {
				t.Fatalf("mv: %v", got.Err)
			}
			g2 := w["g2"].store()
			list, _ := g2.Transactions()
			if len(list) != 1 || list[0].Coordinator != "g1" || len(list[0].Locks) != 1 {
				t.Fatalf("transactions %+v", list)
			}
			if err := r.Settle(t.Context(), "g2", list[0]); err == nil {
				t.Error("it was settled without its coordinator")
			}
			g2.Patience = time.Millisecond
			for line, locked := range map[string]bool{"create /b/d/x": false, "write /b/f y": true, "ls /b": true, "stat /b/d": false, "rm -r /b": true} {
				c, err := metadata.Parse(line)
				if err != nil {
					t.Fatal(err)
				}
				c.Path = base(t, w, "g2") + c.Path[len("/b"):]
				if got := g2.Do(t.Context(), []metadata.Command{c})[0]; errors.Is(got.Err, metadata.ErrLocked) != locked {
					t.Errorf("%s: %v", line, got.Err)
				}
			}
			w["g1"].set(false, nil)
			w["g2"].set(false, nil)
			switch end {
			case "back":
				w.keep(t, lease)
				if got := do(t, r, "read /f"); string(got.Data) != "text" {
					t.Errorf("what was to move: %+v", got)
				}
			case "abort":
				g2.Do(t.Context(), []metadata.Command{metadata.Step{Verb: metadata.Abort, Txn: list[0].Name}.Command("/", "")})
			case "commit":
				g2.Do(t.Context(), []metadata.Command{metadata.Step{Verb: metadata.Finish, Txn: list[0].Name}.Command("/", "")})
			}
			if got := do(t, r, "stat /b/f"); (got.Err == nil) != (end == "commit") {
				t.Errorf("the file: %v", got.Err)
			}
		})
	}
}

// base is the directory of a server's only subtree.
func base(t *testing.T, w world, server string) string {
	t.Helper()
	r := w[server].store().Tree().Do(metadata.Command{Op: metadata.List, Path: metadata.Subtrees, Limit: 10})
	if len(r.Entries) != 1 {
		t.Fatalf("subtrees of %s: %+v", server, r)
	}
	return metadata.Subtrees + "/" + r.Entries[0].Name
}
