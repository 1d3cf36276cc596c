package tree_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
	"skerry/systems/metadata/tree"
)

// implementations must give equal answers.
var implementations = map[string]func() tree.Namespace{
	"tree": func() tree.Namespace { return tree.New() },
}

// random returns a command on a tree so small that commands conflict.
func random(r *rand.Rand, now int64) metadata.Command {
	names := []string{"a", "b", "c"}
	where := func() string {
		p := ""
		for range 1 + r.IntN(4) {
			p += "/" + names[r.IntN(len(names))]
		}
		return p
	}
	ops := []metadata.Op{
		metadata.List, metadata.Stat, metadata.Mkdir, metadata.Mkdir, metadata.Mkdir, metadata.Rmdir, metadata.Create,
		metadata.Remove, metadata.Move, metadata.Move, metadata.Chmod, metadata.Write, metadata.Touch,
	}
	for {
		c := metadata.Command{Op: ops[r.IntN(len(ops))], Path: where(), Time: now, Limit: 1 + r.IntN(4)}
		switch c.Op {
		case metadata.Move:
			c.To, c.Replace = where(), r.IntN(2) == 0
		case metadata.Remove:
			c.Recursive = r.IntN(3) == 0
		case metadata.Mkdir:
			c.Parents = r.IntN(3) == 0
		case metadata.Write:
			c.Data, c.Exclusive = make([]byte, r.IntN(9)), r.IntN(3) == 0
		case metadata.Chmod:
			c.Mode = uint16(r.IntN(0o1000))
		case metadata.List:
			c.Long = r.IntN(2) == 0
			c.After = []string{"", "a"}[r.IntN(2)]
			if r.IntN(5) == 0 {
				c.Path = "/"
			}
		}
		if c.Check() == nil {
			return c
		}
	}
}

// modelled removes what the model does not have.
func modelled(c metadata.Command, r metadata.Result) metadata.Result {
	if c.Op.Changes() {
		r.Entries = nil
	}
	if len(r.Entries) == 0 {
		r.Entries = nil
	}
	for i := range r.Entries {
		r.Entries[i].ID = 0
	}
	return r
}

var byText = cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })

func TestAgainstModel(t *testing.T) {
	for name, fresh := range implementations {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 0))
				n, m := fresh(), newModel()
				for i := range 2000 {
					c := random(r, int64(i))
					got, want := modelled(c, n.Do(c)), m.do(c)
					if diff := cmp.Diff(want, got, byText); diff != "" {
						t.Fatalf("seed %d, step %d, %s: %s", seed, i, c, diff)
					}
				}
			}
		})
	}
}

// do parses and runs a line, and fails the test on an error.
func do(t testing.TB, n tree.Namespace, line string) metadata.Result {
	t.Helper()
	c, err := metadata.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	r := n.Do(c)
	if r.Err != nil {
		t.Fatalf("%s: %v", line, r.Err)
	}
	return r
}

func paths(r metadata.Result) string {
	var list []string
	for _, e := range r.Entries {
		list = append(list, e.Name)
	}
	return strings.Join(list, " ")
}

func TestFind(t *testing.T) {
	n := tree.New()
	for _, line := range []string{"mkdir -p /a/b/c", "mkdir /a-b", "create /a/b/x.go", "create /a/y.go", "create /z.txt"} {
		do(t, n, line)
	}
	for line, want := range map[string]string{
		"find /":                     "/ /a /a/b /a/b/c /a/b/x.go /a/y.go /a-b /z.txt",
		"find /a/b":                  "/a/b /a/b/c /a/b/x.go",
		"find -name *.go /":          "/a/b/x.go /a/y.go",
		"find -type d -maxdepth 1 /": "/ /a /a-b",
		"find -maxdepth 0 /a":        "/a",
		"find -a /a/b/c /":           "/a/b/x.go /a/y.go /a-b /z.txt",
		"find -a /a/b /a":            "/a/b/c /a/b/x.go /a/y.go",
		"find -a /a/b/gone/deeper /": "/a/b/x.go /a/y.go /a-b /z.txt",
		"find /a/y.go":               "/a/y.go",
	} {
		if got := paths(do(t, n, line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	var all []string
	c, _ := metadata.Parse("find -n 3 /")
	for {
		r := n.Do(c)
		all = append(all, paths(r))
		if c.After = r.Next; c.After == "" {
			break
		}
	}
	if got := strings.Join(all, "|"); got != "/ /a /a/b|/a/b/c /a/b/x.go /a/y.go|/a-b /z.txt" {
		t.Errorf("pages %s", got)
	}
}

func TestVirtual(t *testing.T) {
	n := tree.New()
	for _, line := range []string{"mkdir -p /a/b/c", "create /a/b/f", "delegate /a/b other:1"} {
		do(t, n, line)
	}
	for _, line := range []string{
		"ls /a/b", "ls /a/b/c", "stat /a/b", "mkdir /a/b/x", "mkdir -p /a/b/x/y", "rmdir /a/b", "rm -r /a", "rm -r /a/b", "mv /a /z",
		"mv /a/b /z", "chmod 700 /a/b", "find /a/b/c", "write /a/b/f x", "read /a/b/f", "delegate /a third:1",
	} {
		c, err := metadata.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		r := n.Do(c)
		var e *metadata.ElsewhereError
		if !errors.As(r.Err, &e) || e.At != "/a/b" || e.Owner != "other:1" {
			t.Errorf("%s: %v", line, r.Err)
		}
	}
	if got := n.VirtualOwners(); !cmp.Equal(got, map[string]string{"/a/b": "other:1"}) {
		t.Errorf("virtual directories %v", got)
	}
	if r := do(t, n, "ls -l /a"); r.Entries[0].Kind != metadata.Virtual || r.Entries[0].Owner != "other:1" {
		t.Errorf("listed as %+v", r.Entries)
	}
	do(t, n, "adopt /a/b")
	do(t, n, "rmdir /a/b")
	if c := n.Counts(); c.Directories != 2 || c.Files != 0 || c.Virtual != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestDepthOfMoves(t *testing.T) {
	n := tree.New()
	deep := strings.Repeat("/d", metadata.MaxDepth-1)
	do(t, n, "mkdir -p "+deep)
	do(t, n, "mkdir -p /x/y")
	c := metadata.Command{Op: metadata.Move, Path: "/x", To: deep + "/x"}
	if r := n.Do(c); !errors.Is(r.Err, metadata.ErrTooLong) {
		t.Errorf("error %v", r.Err)
	}
	do(t, n, "rmdir /x/y")
	if r := n.Do(c); r.Err != nil {
		t.Error(r.Err)
	}
}

// TestSnapshot writes a snapshot while the tree changes: it has the original tree.
func TestSnapshot(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := tree.New()
		for i := range 300 {
			n.Do(random(r, int64(i)))
		}
		do(t, n, "mkdir -p /virtual")
		do(t, n, "delegate /virtual other:1")
		before, counts := do(t, n, "find -n 10000 /"), n.Counts()
		s, err := n.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Snapshot(); !errors.Is(err, tree.ErrSnapshotUnderWay) {
			t.Errorf("a second snapshot: %v", err)
		}
		for i := range 300 {
			n.Do(random(r, int64(1000+i)))
		}
		var b bytes.Buffer
		if err := s.Write(&b); err != nil {
			t.Fatal(err)
		}
		s.Close()
		loaded, err := tree.Load(&b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, do(t, loaded, "find -n 10000 /")); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if diff := cmp.Diff(counts.Files+counts.Directories<<32+counts.Bytes<<16+counts.Virtual<<48,
			loaded.Counts().Files+loaded.Counts().Directories<<32+loaded.Counts().Bytes<<16+loaded.Counts().Virtual<<48); diff != "" {
			t.Errorf("counts %+v, loaded %+v", counts, loaded.Counts())
		}
	}
}

func FuzzLoad(f *testing.F) {
	n := tree.New()
	for _, line := range []string{"mkdir -p /a/b", "write /a/f text", "delegate /a/b other:1"} {
		do(f, n, line)
	}
	s, err := n.Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := tree.Load(bytes.NewReader(b))
		if err != nil {
			return
		}
		do(t, n, "find /")
	})
}
