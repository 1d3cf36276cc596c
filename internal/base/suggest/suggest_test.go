package suggest

import "testing"

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"threds": "threads", "theards": "threads", "THREADS": "threads", "Singapur": "Singapore", "x": "", "g": "", "completely": "",
	} {
		if got := Nearest(word, []string{"a", "threads", "Singapore"}); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"zipfain", "zipfian", 1}, {"latest", "lastest", 1}, {"uniform", "unicorn", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance of %q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
