package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"skerry/systems/metadata"
)

// pagesOf lists a directory page by page.
func pagesOf(t *testing.T, r namespace, line string, page int) (all []string) {
	t.Helper()
	c, err := metadata.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	for c.Limit = page; ; {
		found := r.Do(t.Context(), []metadata.Command{c})[0]
		if found.Err != nil {
			t.Fatalf("%s: %v", line, found.Err)
		}
		if len(found.Entries) > page {
			t.Fatalf("%s: a page of %d entries", line, len(found.Entries))
		}
		for _, e := range found.Entries {
			all = append(all, e.Name)
		}
		if c.After = found.Next; c.After == "" {
			return all
		}
	}
}

// TestParts splits a directory, fills it and merges it. Clients see no difference, although each server holds a
// part of the entries.
func TestParts(t *testing.T) {
	w := newWorld(t)
	r := w.router(t, 0)
	must(t, r, "mkdir -m 750 /hot", "write /hot/before text", "mkdir -p /hot/dir/below", "delegate /hot g1,g2,g3", "chmod 700 /hot")
	want := []string{"before", "dir"}
	for i := range 200 {
		must(t, r, fmt.Sprintf("create /hot/f%03d", i))
		want = append(want, fmt.Sprintf("f%03d", i))
	}
	alike := func(how string) {
		t.Helper()
		for _, router := range []namespace{r, w.router(t, 0)} {
			for _, page := range []int{1, 7, 1000} {
				if got := pagesOf(t, router, "ls /hot", page); !slices.Equal(got, want) {
					t.Errorf("%s, %d at a time: %v", how, page, got)
				}
				found := pagesOf(t, router, "find /hot", page)
				paths := []string{"/hot", "/hot/dir/below"}
				for _, name := range want {
					paths = append(paths, "/hot/"+name)
				}
				slices.Sort(found)
				slices.Sort(paths)
				if !slices.Equal(found, paths) {
					t.Errorf("%s: find, %d at a time: %v", how, page, found)
				}
			}
			stat := do(t, router, "stat /hot")
			if stat.Err != nil || stat.Entries[0].Size != int64(len(want)) || stat.Entries[0].Mode != 0o700 || stat.Entries[0].Name != "hot" {
				t.Errorf("%s: stat: %+v", how, stat)
			}
		}
	}
	share := func() (shares []int) {
		t.Helper()
		for _, name := range []string{"g1", "g2", "g3"} {
			n := 0
			own := w[name].store().Tree()
			for _, e := range own.Do(metadata.Command{Op: metadata.List, Path: metadata.Subtrees, Limit: 10}).Entries {
				n += len(own.Do(metadata.Command{Op: metadata.List, Path: metadata.Join(metadata.Subtrees, e.Name), Limit: 1000}).Entries)
			}
			shares = append(shares, n)
		}
		return shares
	}
	alike("parted")
	for _, n := range share() {
		if n < 40 {
			t.Errorf("the servers have %v entries", share())
		}
	}
	if err := do(t, r, "rmdir /hot").Err; metadata.ErrorCode(err) != "not_empty" || !strings.Contains(err.Error(), "/hot") {
		t.Errorf("rmdir: %v", err)
	}
	for _, wrong := range []string{"delegate /hot g1,g1", "delegate /hot g1,g9", "delegate /hot g1,"} {
		if err := do(t, r, wrong).Err; metadata.ErrorCode(err) != "invalid" {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	must(t, r, "mv /hot/f000 /hot/f200", "rm /hot/f001", "delegate /hot g1,g2")
	want = append(slices.DeleteFunc(want, func(name string) bool { return name == "f000" || name == "f001" }), "f200")
	alike("in two parts")
	if got := share(); got[2] != 0 {
		t.Errorf("g3 still has a part: %v", got)
	}
	must(t, r, "delegate /hot g3")
	alike("brought together")
	if got := share(); got[2] != len(want) {
		t.Errorf("g3 does not have all entries: %v", got)
	}
	must(t, r, "delegate /hot g1,g2,g3", "mv /hot /cold", "rm -r /cold", "mkdir /hot", "delegate /hot g2,g3", "rmdir /hot")
	if left := w.orphans(); len(left) > 0 {
		t.Errorf("orphans: %v", left)
	}
}

// TestSweepKeepsParts sweeps a server with an empty part, to which a virtual directory leads.
func TestSweepKeepsParts(t *testing.T) {
	w := newWorld(t)
	r := w.router(t, 0)
	must(t, r, "mkdir /hot", "delegate /hot g1,g2,g3")
	for name := range w {
		if removed, err := r.Sweep(t.Context(), name, 0); err != nil || len(removed) > 0 {
			t.Errorf("%s: removed %v: %v", name, removed, err)
		}
	}
	must(t, r, "create /hot/a", "create /hot/b", "create /hot/c", "create /hot/d")
}
