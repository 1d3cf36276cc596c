package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/store"
	"skerry/systems/metadata/tree"
)

// faulty is a server that can be unreachable or lose answers.
type faulty struct {
	store *store.Store
	mu    sync.Mutex
	down  bool
	// after, if set, is called after each command.
	after func(metadata.Command)
}

func (f *faulty) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	f.mu.Lock()
	down, after := f.down, f.after
	f.mu.Unlock()
	if down {
		return []metadata.Result{{Err: metadata.ErrUnavailable}}
	}
	for _, c := range commands {
		if err := c.Check(); err != nil {
			return []metadata.Result{{Err: err}}
		}
	}
	results := f.store.Do(ctx, commands)
	if after != nil {
		after(commands[len(commands)-1])
	}
	return results
}

func (f *faulty) set(down bool, after func(metadata.Command)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.after = down, after
}

// servers starts g1, which has the root, g2 and g3.
func servers(t *testing.T) map[string]*faulty {
	t.Helper()
	all := make(map[string]*faulty)
	for i := range 3 {
		state := store.NewState()
		own := store.New(state, &disk{machine: state})
		own.Patience = patience
		all[fmt.Sprintf("g%d", i+1)] = &faulty{store: own}
	}
	return all
}

func router(t *testing.T, all map[string]*faulty) *cluster.Router {
	t.Helper()
	// No request times out on a busy machine.
	s := cluster.Servers{Root: "g1", Service: make(map[string]metadata.Service), Lease: patience}
	for name, f := range all {
		s.Service[name] = f
	}
	r, err := cluster.NewRouter(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type namespace interface {
	Do(ctx context.Context, commands []metadata.Command) []metadata.Result
}

func do(t *testing.T, n namespace, line string) metadata.Result {
	t.Helper()
	c, err := metadata.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	return n.Do(t.Context(), []metadata.Command{c})[0]
}

func must(t *testing.T, n namespace, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if r := do(t, n, line); r.Err != nil {
			t.Fatalf("%s: %v", line, r.Err)
		}
	}
}

// TestSubtrees compares answers from all servers.
func TestSubtrees(t *testing.T) {
	all := servers(t)
	a, b := router(t, all), router(t, all)
	must(t, a, "mkdir /home", "mkdir -m 700 /etc", "delegate /home g2", "delegate /etc g3", "mkdir -p /home/ann/mail", "mkdir /home/bob",
		"delegate /home/bob g3", "write /home/bob/f text")
	if n := all["g2"].store.Tree().Counts().Directories; n != 5 { // root, .subtrees, the subtree, ann, mail
		t.Errorf("%d directories on g2", n)
	}
	for line, want := range map[string]string{
		"stat /home": "home directory", "stat /etc": "etc directory", "stat /home/bob": "bob directory",
		"stat /home/bob/f": "f file", "ls -l /home": "ann directory, bob virtual",
		"ls -l /": "etc virtual, home virtual", "find /home/ann": "/home/ann directory, /home/ann/mail directory", "ls /etc": "",
	} {
		for _, n := range []namespace{a, b} {
			r := do(t, n, line)
			var got []string
			for _, e := range r.Entries {
				got = append(got, e.Name+" "+e.Kind.String())
			}
			if r.Err != nil || strings.Join(got, ", ") != want {
				t.Errorf("%s: %v, %v; want %s", line, got, r.Err, want)
			}
		}
	}
	if r := do(t, b, "stat /etc"); r.Err != nil || r.Entries[0].Mode != 0o700 {
		t.Errorf("the mode was not copied: %+v", r)
	}
	if r := do(t, b, "read /home/bob/f"); string(r.Data) != "text" {
		t.Errorf("read %+v", r)
	}
	for line, want := range map[string]error{
		"mkdir /home": metadata.ErrExists, "create /home": metadata.ErrExists, "write /home x": metadata.ErrIsDirectory,
		"rm /home":    metadata.ErrIsDirectory,
		"rmdir /home": metadata.ErrNotEmpty, "mv /home /etc": metadata.ErrExists, "mv /home/ann /home/bob": metadata.ErrExists,
		"mv /home/ann /home/bob/f":    metadata.ErrExists,
		"mv -f /home/ann /home/bob/f": metadata.ErrNotDirectory, "mv -f /home/bob/f /etc": metadata.ErrIsDirectory,
		"mv -f /etc /home":  metadata.ErrNotEmpty,
		"mv /home/bob/g /g": metadata.ErrNotFound, "mv /home/bob/f /x/f": metadata.ErrNotFound,
		"mv /home/bob/f /etc/x/f": metadata.ErrNotFound, "mv /home/bob /home/bob/x": metadata.ErrInvalid,
		"stat /home/carl": metadata.ErrNotFound, "mkdir /home/carl/x": metadata.ErrNotFound, "ls /home/bob/f": metadata.ErrNotDirectory,
		"delegate /home/ann g9": metadata.ErrInvalid,
		"adopt /home":           metadata.ErrInvalid,
	} {
		c, err := metadata.Parse(line)
		r := metadata.Result{Err: err}
		if err == nil {
			r = b.Do(t.Context(), []metadata.Command{c})[0]
		}
		if !errors.Is(r.Err, want) {
			t.Errorf("%s: %v, want %v", line, r.Err, want)
		} else if strings.Contains(r.Err.Error(), "/.subtrees/") && want != metadata.ErrElsewhere {
			t.Errorf("%s: %v names a path that is not in the command", line, r.Err)
		}
	}
	must(t, b, "mv /home/ann/mail /home/ann/post", "rm /home/bob/f", "rmdir /home/bob")
	if r := do(t, a, "ls /home/bob"); !errors.Is(r.Err, metadata.ErrNotFound) {
		t.Errorf("a router with an outdated map: %+v", r)
	}
}

// TestRmdirHalfDone removes a subtree while the server of its virtual directory disappears between the two steps.
// Afterwards no router sees the directory.
func TestRmdirHalfDone(t *testing.T) {
	all := servers(t)
	a, b := router(t, all), router(t, all)
	must(t, a, "mkdir /d", "delegate /d g2")
	must(t, b, "stat /d")
	all["g2"].set(false, func(c metadata.Command) {
		if c.Op == metadata.Rmdir {
			all["g1"].set(true, nil)
		}
	})
	if r := do(t, a, "rmdir /d"); !errors.Is(r.Err, metadata.ErrUnavailable) {
		t.Fatalf("rmdir: %v", r.Err)
	}
	all["g1"].set(false, nil)
	all["g2"].set(false, nil)
	for _, line := range []string{"mkdir -p /d/x", "mkdir /d/x", "stat /d", "ls /d"} {
		want := metadata.ErrNotFound
		if line == "mkdir -p /d/x" {
			want = nil // the parent exists again
		}
		if r := do(t, b, line); !errors.Is(r.Err, want) {
			t.Errorf("%s: %v, want %v", line, r.Err, want)
		}
		if line == "mkdir -p /d/x" {
			must(t, b, "rmdir /d/x", "rmdir /d")
		}
	}
	must(t, b, "mkdir /d", "create /d/f")
	must(t, a, "stat /d/f")
	if n := all["g2"].store.Tree().Counts().Directories; n != 2 {
		t.Errorf("%d directories on g2", n)
	}
}

// TestDelegateHalfDone loses the answer to the step that makes the directory virtual.
func TestDelegateHalfDone(t *testing.T) {
	all := servers(t)
	a := router(t, all)
	must(t, a, "mkdir /d", "mkdir /e", "create /e/f")
	all["g2"].set(false, func(metadata.Command) { all["g1"].set(true, nil) })
	if r := do(t, a, "delegate /d g2"); !errors.Is(r.Err, metadata.ErrUnavailable) {
		t.Errorf("delegate: %v", r.Err)
	}
	all["g1"].set(false, nil)
	all["g2"].set(false, nil)
	must(t, a, "create /d/f", "rm /d/f", "delegate /d g2", "create /d/f")
	must(t, a, "delegate /e g2", "rm /e/f")
}

// TestModel runs commands through routers with different outdated maps, while empty directories are delegated. The
// answers are those of a single tree.
func TestModel(t *testing.T) {
	all := servers(t)
	routers := []*cluster.Router{router(t, all), router(t, all), router(t, all)}
	model := tree.New()
	random := rand.New(rand.NewPCG(7, 8))
	path := func() string {
		p := ""
		for range 1 + random.IntN(4) {
			p += "/" + string(rune('a'+random.IntN(3)))
		}
		return p
	}
	given := 0
	for range 3000 {
		r := routers[random.IntN(len(routers))]
		if random.IntN(4) == 0 {
			if do(t, r, fmt.Sprintf("delegate %s g%d", path(), 1+random.IntN(3))).Err == nil {
				given++
			}
			continue
		}
		verb := []string{"mkdir", "mkdir -p", "create", "write", "rmdir", "rmdir", "rm", "rm -r", "mv", "stat", "ls -l", "read",
			"chmod 700", "find", "find -type d", "find -maxdepth 1", "mv -f"}[random.IntN(17)]
		line := verb + " " + path()
		switch verb {
		case "write":
			line += " text"
		case "mv", "mv -f":
			line += " " + path()
		}
		c, err := metadata.Parse(line)
		if err != nil {
			continue // a directory into itself
		}
		got := do(t, r, line)
		want := model.Do(c)
		if g, w := metadata.ErrorCode(got.Err), metadata.ErrorCode(want.Err); g != w {
			t.Fatalf("%s: %v, want %v", line, got.Err, want.Err)
		}
		if got.Err != nil && (got.Err.Error()[0] != '/' || strings.Contains(got.Err.Error(), ".subtrees")) {
			t.Errorf("%s: %v", line, got.Err)
		}
		if d := cmp.Diff(names(want), names(got)); d != "" {
			t.Fatalf("%s: %s", line, d)
		}
		if c.Op == metadata.Find && got.Err == nil {
			if d := cmp.Diff(names(want), paged(t, r, c)); d != "" {
				t.Fatalf("%s, page by page: %s", line, d)
			}
		}
	}
	if given < 8 {
		t.Errorf("%d directories were given away", given)
	}
}

// TestConcurrent runs clients that create, delegate, use and remove the same directories. Every answer is possible
// for a single tree, and all remaining entries are reachable.
func TestConcurrent(t *testing.T) {
	all := servers(t)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			r := router(t, all)
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for n := range 100 {
				d := fmt.Sprintf("/%d", random.IntN(2))
				for _, line := range []string{"mkdir " + d, fmt.Sprintf("delegate %s g%d", d, 1+random.IntN(3)),
					fmt.Sprintf("create %s/%d", d, i), fmt.Sprintf("mv %s/%d %s/m%d", d, i, d, i), fmt.Sprintf("rm %s/m%d", d, i), "rmdir " + d} {
					c, err := metadata.Parse(line)
					if err != nil {
						t.Error(err)
						return
					}
					err = r.Do(context.Background(), []metadata.Command{c})[0].Err
					if errors.Is(err, metadata.ErrUnavailable) || errors.Is(err, metadata.ErrNotDirectory) || errors.Is(err, metadata.ErrInvalid) {
						t.Errorf("%d: %s: %v", n, line, err)
					}
				}
			}
		})
	}
	clients.Wait()
	last := router(t, all)
	for _, d := range []string{"/0", "/1"} {
		if r := do(t, last, "stat "+d); r.Err == nil {
			for _, e := range do(t, last, "ls "+d).Entries {
				must(t, last, "rm "+d+"/"+e.Name)
			}
			must(t, last, "rmdir "+d)
		}
	}
	for name, s := range all {
		if left := s.store.Tree().VirtualOwners(); len(left) > 0 {
			t.Errorf("%s: leftover virtual directories: %v", name, left)
		}
	}
}

// paged returns the names of all pages of two entries.
func paged(t *testing.T, r *cluster.Router, c metadata.Command) []string {
	t.Helper()
	c.Limit = 2
	var all metadata.Result
	for {
		page := r.Do(t.Context(), []metadata.Command{c})[0]
		if page.Err != nil {
			t.Fatal(page.Err)
		}
		all.Entries = append(all.Entries, page.Entries...)
		if c.After = page.Next; c.After == "" {
			return names(all)
		}
	}
}

// names returns what all placements of a result's entries have in common.
func names(r metadata.Result) []string {
	var list []string
	for _, e := range r.Entries {
		kind := e.Kind
		if kind == metadata.Virtual {
			kind = metadata.Directory
		}
		list = append(list, e.Name+" "+kind.String())
	}
	return append(list, string(r.Data))
}

// own returns commands in a directory, including failing ones.
func own(dir string) []string {
	return []string{
		"mkdir " + dir + "/d", "mkdir -p " + dir + "/d/e/f", "create " + dir + "/d/x", "create " + dir + "/d/x",
		"write " + dir + "/d/y text", "stat " + dir + "/d/x", "ls -l " + dir + "/d",
		"read " + dir + "/d/y", "mv " + dir + "/d/x " + dir + "/d/z", "mv -f " + dir + "/d/y " + dir + "/d/z",
		"stat " + dir + "/d/x", "create " + dir + "/none/x", "find " + dir + "/d",
		"chmod 700 " + dir + "/d/z", "rm " + dir + "/d/z", "rmdir " + dir + "/d", "rm -r " + dir + "/d", "rmdir " + dir + "/d",
	}
}

// TestOwnSubtreeNeedsNoOtherServer runs commands in a directory. They use only the directory's server, because any
// other request would add a network delay. Directories above it are looked up once.
func TestOwnSubtreeNeedsNoOtherServer(t *testing.T) {
	w := newWorld(t)
	must(t, w.router(t, 0), "mkdir -p /own/g1", "mkdir -p /own/g2", "delegate /own/g2 g2", "mkdir -p /own/g2/n", "delegate /own/g2/n g3")
	for _, at := range []struct {
		dir   string
		first map[string]uint64 // requests of a new router until it knows the way
		home  string
	}{
		{"/own/g1", map[string]uint64{"g1": 1, "g2": 0, "g3": 0}, "g1"},
		{"/own/g2", map[string]uint64{"g1": 1, "g2": 1, "g3": 0}, "g2"},
		{"/own/g2/n", map[string]uint64{"g1": 1, "g2": 1, "g3": 1}, "g3"},
	} {
		r := w.router(t, 0)
		must(t, r, "ls "+at.dir)
		if diff := cmp.Diff(at.first, r.Asked()); diff != "" {
			t.Errorf("%s is found: %s", at.dir, diff)
		}
		for _, line := range own(at.dir) {
			before := r.Asked()
			do(t, r, line)
			after := r.Asked()
			if after[at.home] == before[at.home] {
				t.Errorf("%s sent no request", line)
			}
			before[at.home] = after[at.home]
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("%s sent requests to other servers: %s", line, diff)
			}
		}
	}
}
