package tree_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"skerry/systems/metadata"
	"skerry/systems/metadata/tree"
)

// TestMemory checks the documented memory use: an empty directory takes less than 200 bytes besides its name, for
// any order and any number per directory.
func TestMemory(t *testing.T) {
	const reach, n = 200, 200_000
	for shape, path := range map[string]func(i int) string{
		"one directory, in order":     func(i int) string { return fmt.Sprintf("/%08d", i) },
		"one directory, random order": func(i int) string { return fmt.Sprintf("/%08d", i*7919%1_000_003) },
		"100 per directory":           func(i int) string { return fmt.Sprintf("/%05d/%02d", i/100, i%100) },
		"one per directory, in order": func(i int) string { return fmt.Sprintf("/%06d/d", i) },
	} {
		tr := tree.New()
		before := heap()
		for i := range n {
			c := metadata.Command{Op: metadata.Mkdir, Path: path(i), Parents: true, Mode: 0o755}
			if r := tr.Do(c); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		per := float64(heap()-before) / float64(tr.Counts().Directories)
		t.Logf("%s: %.0f bytes a directory, its name of 1 to 8 among them", shape, per)
		if per > reach {
			t.Errorf("%s: %.0f bytes a directory, more than %d", shape, per, reach)
		}
		runtime.KeepAlive(tr)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkReaders measures reads of directories two levels down by threads that share the root (go test -bench
// Readers -cpu 1,2,4,8).
func BenchmarkReaders(b *testing.B) {
	for name, fresh := range implementations {
		n := fresh()
		for i := range 64 {
			do(b, n, fmt.Sprintf("mkdir -p /top/%d/x", i))
		}
		for _, writer := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/writer=%t", name, writer), func(b *testing.B) {
				if writer {
					stop := churn(b, n)
					defer stop()
				}
				b.RunParallel(func(pb *testing.PB) {
					for i := 0; pb.Next(); i++ {
						n.Do(metadata.Command{Op: metadata.List, Path: "/top/7", Limit: 100})
					}
				})
			})
		}
	}
}

// churn creates and removes directories next to the ones being read, until stop.
func churn(b *testing.B, n tree.Namespace) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			p := fmt.Sprintf("/top/7/%d", i%50)
			n.Do(metadata.Command{Op: metadata.Mkdir, Path: p, Mode: 0o755})
			n.Do(metadata.Command{Op: metadata.Rmdir, Path: p})
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// BenchmarkLoad reads a snapshot of a million directories, a thousand per directory.
func BenchmarkLoad(b *testing.B) {
	n := tree.New()
	for i := range 1_000_000 {
		n.Do(metadata.Command{Op: metadata.Mkdir, Path: fmt.Sprintf("/%d/%d", i/1000, i%1000), Parents: true, Mode: 0o755})
	}
	s, err := n.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	var buf bytes.Buffer
	if err := s.Write(&buf); err != nil {
		b.Fatal(err)
	}
	s.Close()
	b.SetBytes(int64(buf.Len()))
	for b.Loop() {
		if _, err := tree.Load(bytes.NewReader(buf.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
