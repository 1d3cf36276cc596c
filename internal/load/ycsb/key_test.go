package ycsb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGoldenKeys(t *testing.T) {
	// What YCSB itself makes of key numbers 0..5.
	want := []string{
		"user6284781860667377211", "user8517097267634966620", "user1820151046732198393",
		"user4052466453699787802", "user3232700585171816769", "user1000385178204227360",
	}
	w := Workload{ZeroPadding: 1}
	var got []string
	var arena keyArena
	for n := range int64(6) {
		if a, b := w.Key(n), arena.key(&w, n); a != b {
			t.Errorf("key %d is %s, in the arena %s", n, a, b)
		}
		got = append(got, w.Key(n))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestKeyFormat(t *testing.T) {
	for _, c := range []struct {
		w    Workload
		n    int64
		want string
	}{
		{Workload{OrderedKeys: true}, 7, "user7"},
		{Workload{OrderedKeys: true, ZeroPadding: 1}, 42, "user42"},
		{Workload{OrderedKeys: true, ZeroPadding: 8}, 5, "user00000005"},
		{Workload{OrderedKeys: true, ZeroPadding: 2}, 12345, "user12345"},
		{Workload{ZeroPadding: 22}, 0, "user0006284781860667377211"},
	} {
		if got := c.w.Key(c.n); got != c.want {
			t.Errorf("key %d with %d digits: %s, want %s", c.n, c.w.ZeroPadding, got, c.want)
		}
	}
}

// Keys stay as they are while the arena goes on to its next block.
func TestArenaKeepsKeys(t *testing.T) {
	w := Workload{ZeroPadding: 1}
	var arena keyArena
	const n = 5000 // several blocks
	keys := make([]string, n)
	for i := range keys {
		keys[i] = arena.key(&w, int64(i))
	}
	for i, k := range keys {
		if want := w.Key(int64(i)); k != want {
			t.Fatalf("key %d became %q, want %q", i, k, want)
		}
	}
}
