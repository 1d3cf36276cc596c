package procfs

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"skerry/test/testkit"
)

func TestParseRunDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{"718563 2403 1\n": 2403, "1 0 0": 0} {
		if got, ok := parseRunDelay([]byte(text)); got != want || !ok {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "1 2", "a b c"} {
		if got, ok := parseRunDelay([]byte(text)); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The sum never decreases: the waits of ended threads count, and a reused ID starts at 0.
func TestRunDelaysAddUp(t *testing.T) {
	var r RunDelays
	first, known := r.Update([]int{os.Getpid()})
	if !known {
		testkit.Lacks(t, testkit.Delays, errors.New("the kernel does not count the time that threads wait for a processor"))
	}
	second, _ := r.Update([]int{os.Getpid()})
	if second < first {
		t.Errorf("%v after %v", second, first)
	}
	if third, known := r.Update(nil); third != second || !known {
		t.Errorf("without processes: %v, %v; want %v", third, known, second)
	}
	if _, known := r.Update([]int{1 << 30}); known {
		t.Error("a process that is not running has a delay")
	}
}

// BenchmarkRunDelays reads the waits of a process with 400 threads, more than most databases have on three nodes
// together.
func BenchmarkRunDelays(b *testing.B) {
	end := make(chan struct{})
	defer close(end)
	for range 400 {
		begun := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(begun)
			<-end
		}()
		<-begun
	}
	var r RunDelays
	for b.Loop() {
		r.Update([]int{os.Getpid()})
	}
}

func TestStealCounter(t *testing.T) {
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
