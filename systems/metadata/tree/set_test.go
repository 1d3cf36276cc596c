package tree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSet changes a set at random and compares it with a map. Earlier versions of the set must not change.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, span := range []int{10, 100, 5000} {
		var s *set
		model := make(map[string]*node)
		type kept struct {
			set   *set
			names []string
		}
		var all []kept
		for i := range 6000 {
			name := fmt.Sprint("n", r.IntN(span))
			if r.IntN(5) < 3-2*(i/2000%2) {
				n := &node{id: uint64(i)}
				s, model[name] = s.with(item{name, n}), n
			} else if model[name] != nil {
				s = s.without(name)
				delete(model, name)
			}
			if s.get(name) != model[name] || s.len() != len(model) {
				t.Fatalf("%s is %v, %d entries; want %v, %d", name, s.get(name), s.len(), model[name], len(model))
			}
			if i%1000 == 500 {
				all = append(all, kept{s, names(s, "")})
				if want := sorted(model); !slices.Equal(names(s, ""), want) {
					t.Fatal(cmp.Diff(want, names(s, "")))
				}
			}
			if i%500 == 0 {
				want := slices.DeleteFunc(sorted(model), func(n string) bool { return n <= name })
				if got := names(s, name); !slices.Equal(got, want) {
					t.Fatalf("after %s: %s", name, cmp.Diff(want, got))
				}
			}
		}
		for _, k := range all {
			if !slices.Equal(names(k.set, ""), k.names) {
				t.Error("an earlier version of the set changed")
			}
		}
	}
}

// TestSetRemoval empties sets from either end and from the middle.
func TestSetRemoval(t *testing.T) {
	for _, order := range []func(i, n int) int{
		func(i, n int) int { return i }, func(i, n int) int { return n - 1 - i }, func(i, n int) int { return (i*7919 + n/2) % n },
	} {
		var s *set
		const n = 3000
		for i := range n {
			s = s.with(item{fmt.Sprintf("%05d", i), &node{}})
		}
		for i := range n {
			name := fmt.Sprintf("%05d", order(i, n))
			if s = s.without(name); s.len() != n-1-i || s.get(name) != nil {
				t.Fatalf("%s removed: %d left", name, s.len())
			}
		}
		if s != nil {
			t.Error("an empty set is not nil")
		}
	}
}

func TestBuild(t *testing.T) {
	for _, n := range []int{0, 1, 32, 33, 1025, 40_000} {
		items := make([]item, n)
		for i := range items {
			items[i] = item{fmt.Sprintf("%06d", i), &node{}}
		}
		s := buildSet(items)
		if s.len() != n || len(names(s, "")) != n || n > 0 && s.get(items[n-1].name) != items[n-1].node {
			t.Errorf("%d items: %d", n, s.len())
		}
	}
}

func names(s *set, after string) []string {
	var list []string
	s.each(after, after == "", func(it item) bool {
		list = append(list, it.name)
		return true
	})
	return list
}

func sorted(m map[string]*node) []string {
	var list []string
	for n := range m {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}
