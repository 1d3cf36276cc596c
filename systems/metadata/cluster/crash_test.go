package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
)

// furniture is a tree on three servers: /b on g2, /c on g3, /b/n on g3, /a/m/v on g2 and, below it, w on g3; the
// empty /b/k on g3; /p and the empty /q in parts on all three.
var furniture = []string{
	"mkdir /a", "mkdir /b", "mkdir /c", "delegate /b g2", "delegate /c g3", "write /a/f file", "mkdir -m 700 /a/e",
	"mkdir -p /a/d/x", "write /a/d/x/f deep",
	"mkdir /b/n", "delegate /b/n g3", "write /b/n/f far", "mkdir -p /a/m/v", "delegate /a/m/v g2", "mkdir /a/m/v/w",
	"delegate /a/m/v/w g3", "write /a/m/v/w/f farther",
	"write /b/g old", "chmod 0 /b/g", "mkdir /b/k", "delegate /b/k g3",
	"mkdir -m 750 /p", "delegate /p g1,g2,g3", "write /p/1 one", "write /p/2 two", "write /p/3 three", "write /p/4 four",
	"mkdir -p /p/5/x", "mkdir -p /p/6/y", "delegate /p/6 g2", "mkdir /q", "delegate /q g2,g3",
}

var crossings = []string{
	"mv /a/f /b/f", "mv /b/g /a/g", "mv /a/e /b/e", "mv /a/d /b/d", "mv /b /a/b", "mv /b/n /c/n", "mv /a/m /m", "mv /a/m /b/m",
	"mv /a/m/v /c/v",
	"rm -r /a/m", "rm -r /b", "mv -f /a/f /b/g", "mv -f /a/e /b/k", "mv -f /a/d /b/k",
	"delegate /a/d g3", "delegate /a/e g3", "delegate /b g3", "delegate /a/m/v g1", "delegate /a/m g2",
	"delegate /a/d g1,g2", "delegate /a/e g2,g3", "delegate /b g1,g2,g3", "delegate /p g2", "delegate /p g1,g3", "rmdir /q",
	"rm -r /p", "mv /p /b/p", "mv /q /a/q",
	"mv /p/1 /p/11", "mv /p/2 /p/22", "mv /p/5 /p/55", "mv /p/6 /p/66", "mv /a/f /p/f", "mv /p/3 /a/3", "mv -f /p/4 /p/1", "mv -f /a/d /q",
}

// crash is the point of a crash: before or after a request with a number is served.
type crash struct {
	at     int
	before bool
	router bool // the router dies with the server
	all    bool // all servers die
}

func (c crash) String() string {
	return fmt.Sprintf("at %d, before %t, router %t, all %t", c.at, c.before, c.router, c.all)
}

// TestCrashes kills servers and routers at every step of commands on several servers. Afterwards the tree is as
// before or as after the command, and leftovers are swept. With SKERRY_METADATA_CRASHES, each step has all kinds
// of crashes, otherwise one.
func TestCrashes(t *testing.T) {
	for i, line := range crossings {
		t.Run(strings.ReplaceAll(line, "/", "_"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			must(t, w.router(t, 0), furniture...)
			before := w.image(t)
			var steps atomic.Int64
			for _, m := range w {
				m.set(false, func(before bool, _ []metadata.Command) bool {
					if before {
						steps.Add(1)
					}
					return false
				})
			}
			must(t, w.router(t, 0), line)
			last := int(steps.Load())
			for _, m := range w {
				m.set(false, nil)
			}
			after := w.image(t)
			if before == after && !strings.HasPrefix(line, "delegate") {
				t.Fatal("no command was executed")
			}
			if left := w.orphans(); len(left) > 0 {
				t.Errorf("orphans: %v", left)
			}
			for at := 1; at <= last; at++ {
				for kind := range 6 {
					if kind != (at+i)%6 && os.Getenv("SKERRY_METADATA_CRASHES") == "" {
						continue
					}
					crashed(t, line, crash{at: at, before: kind%2 == 0, router: kind/2 == 1, all: kind/2 == 2}, before, after)
				}
			}
		})
	}
}

func crashed(t *testing.T, line string, c crash, before, after string) {
	t.Helper()
	const lease = 20 * time.Millisecond
	w := newWorld(t)
	must(t, w.router(t, 0), furniture...)
	var mu sync.Mutex
	steps, dead := 0, false
	for _, m := range w {
		m.set(false, func(first bool, _ []metadata.Command) bool {
			mu.Lock()
			defer mu.Unlock()
			if first {
				steps++
			}
			if dead {
				return true
			}
			if steps != c.at || first != c.before {
				return false
			}
			dead = c.router || c.all
			m.mu.Lock()
			m.down = true
			m.mu.Unlock()
			return true
		})
	}
	r := do(t, w.router(t, lease), line)
	for _, m := range w {
		if m.set(false, nil); c.all || steps >= c.at {
			m.restart()
		}
	}
	w.runKeepers(t, lease)
	w.sweep(t, lease)
	got := w.image(t)
	switch {
	case got != before && got != after:
		t.Errorf("%s: neither before nor after: %s", c, cmp.Diff(after, got))
	case r.Err == nil && got != after:
		t.Errorf("%s: acknowledged but not applied", c)
	case r.Err != nil && got != before && !errors.Is(r.Err, metadata.ErrUnavailable):
		t.Errorf("%s: applied, but the answer is %v", c, r.Err)
	case r.Err != nil && got != before && strings.Contains(r.Err.Error(), "nothing was changed"):
		t.Errorf("%s: applied, but the answer is %v", c, r.Err)
	}
	if left := w.orphans(); len(left) > 0 {
		t.Errorf("%s: orphans: %v", c, left)
	}
}
