package procfs

import (
	"testing"
	"time"
)

func TestStolen(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 50 10 15 2000 250 3 3 40 0 0\n": 800 * time.Millisecond,
		"cpu 1 2 3 4 5 6 7\n": -1, "cpu a b c d e f g h\n": -1, "": -1,
	} {
		got, ok := parseSteal([]byte(text))
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
	s, err := NewStealCounter()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Delta(); got < 0 {
		t.Errorf("%v were given back", got)
	}
}
