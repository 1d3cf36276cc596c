package host

import (
	"sync"
	"testing"
)

// Processes are started from many goroutines: each start locks its own thread and traces its child.
func TestConcurrentStarts(t *testing.T) {
	n := newNode(t, nil)
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			p, err := n.Start(t.Context(), Command{Name: "true", Path: "/bin/true"})
			if err != nil {
				t.Error(err)
				return
			}
			<-p.Done()
			if err := p.Err(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func BenchmarkStart(b *testing.B) {
	n := newNode(b, nil)
	for b.Loop() {
		p, err := n.Start(b.Context(), Command{Name: "true", Path: "/bin/true"})
		if err != nil {
			b.Fatal(err)
		}
		<-p.Done()
	}
}
