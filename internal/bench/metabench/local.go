package metabench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/system/metadata"
	"skerry/internal/system/metadata/journal"
	"skerry/internal/system/metadata/tree"
	"skerry/internal/system/metadata/tree/chain"
	"skerry/internal/system/metadata/treestore"
)

// opened is a store in this process.
func opened(dir string) (*treestore.Store, *journal.Journal, error) {
	state := treestore.NewState()
	j, _, err := journal.Open(dir, state, journal.Options{})
	return treestore.New(state, j), j, err
}

func mkdir(path string) metadata.Command {
	return metadata.Command{Op: metadata.Mkdir, Path: path, Mode: metadata.DefaultDirMode}
}

// rate is operations per second of threads that run one after the other for a time; next
// is the i-th operation of a thread.
func rate(threads int, d time.Duration, next func(thread, i int) error) (float64, error) {
	var wg sync.WaitGroup
	var total atomic.Int64
	errs := make([]error, threads)
	start := time.Now()
	for t := range threads {
		wg.Go(func() {
			n := 0
			// The clock is asked once in a while: it costs a part of what is measured.
			for ; errs[t] == nil && (n%64 != 0 || time.Since(start) < d); n++ {
				errs[t] = next(t, n)
			}
			total.Add(int64(n))
		})
	}
	wg.Wait()
	return float64(total.Load()) / time.Since(start).Seconds(), errors.Join(errs...)
}

// local measures the store without a network.
func (b *bench) local(ctx context.Context) (err error) {
	s, j, err := opened(b.room("local"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	do := func(c metadata.Command) error { return s.Do(ctx, []metadata.Command{c})[0].Err }
	for t := range b.Clients {
		if err := do(mkdir("/" + strconv.Itoa(t))); err != nil {
			return err
		}
	}
	path := func(t, i int) string {
		var buf [48]byte
		return string(strconv.AppendInt(append(strconv.AppendInt(append(buf[:0], '/'), int64(t), 10), '/'), int64(i), 10))
	}
	b.say("mkdir in process")
	if b.r.Local.Mkdir, err = rate(b.Clients, b.Duration, func(t, i int) error { return do(mkdir(path(t, i))) }); err != nil {
		return err
	}
	b.say("stat in process")
	b.r.Local.Stat, err = rate(b.Clients, b.Duration, func(t, i int) error {
		return do(metadata.Command{Op: metadata.Stat, Path: path(t, i%64)})
	})
	return err
}

// memory measures what a directory takes, a hundred to a directory.
func (b *bench) memory(context.Context) error {
	b.say("memory of %d directories", b.Memory)
	t := tree.New()
	before, names := heap(), 0
	for i := range b.Memory {
		name := fmt.Sprintf("%08d", i)
		names += len(name)
		if i%100 == 0 {
			names += len(name)
		}
		c := mkdir(fmt.Sprintf("/%08d/%s", i/100, name))
		c.Parents = true
		if r := t.Do(c); r.Err != nil {
			return r.Err
		}
	}
	n := int(t.Counts().Directories)
	b.r.Memory.Dirs, b.r.Memory.PerDir = n, float64(int(heap()-before)-names)/float64(n)
	runtime.KeepAlive(t)
	return nil
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// locks measures reads by more and more threads in a tree, and in one with a chain of
// locks.
func (b *bench) locks(context.Context) error {
	d := b.Duration / 5
	for _, threads := range []int{1, 2, 4, 8, 16, 64} {
		b.say("%d readers", threads)
		s := Shared{Threads: threads}
		var err [4]error
		s.Tree, err[0] = readers(tree.New(), threads, d, false)
		s.Chain, err[1] = readers(chain.New(), threads, d, false)
		s.TreeBeside, err[2] = readers(tree.New(), threads, d, true)
		s.ChainBeside, err[3] = readers(chain.New(), threads, d, true)
		if err := errors.Join(err[:]...); err != nil {
			return err
		}
		b.r.Locks = append(b.r.Locks, s)
	}
	return nil
}

// readers lists directories two levels down, of eight entries each, while another thread
// makes and removes directories beside them or not.
func readers(n tree.Namespace, threads int, d time.Duration, writer bool) (float64, error) {
	for i := range 64 {
		c := mkdir(fmt.Sprintf("/top/%d/%d", i/8, i%8))
		c.Parents = true
		if r := n.Do(c); r.Err != nil {
			return 0, r.Err
		}
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	var failed error
	if writer {
		wg.Go(func() {
			for i := 0; !stop.Load() && failed == nil; i++ {
				path := "/top/w" + strconv.Itoa(i%50)
				failed = errors.Join(n.Do(mkdir(path)).Err, n.Do(metadata.Command{Op: metadata.Rmdir, Path: path}).Err)
			}
		})
	}
	paths := make([]string, 8)
	for i := range paths {
		paths[i] = "/top/" + strconv.Itoa(i)
	}
	v, err := rate(threads, d, func(t, i int) error {
		return n.Do(metadata.Command{Op: metadata.List, Path: paths[(t+i)%8]}).Err
	})
	stop.Store(true)
	wg.Wait()
	return v, errors.Join(err, failed)
}

// fill makes a data folder with n directories, a thousand to a directory.
func fill(ctx context.Context, dir string, n int) error {
	s, j, err := opened(dir)
	if err != nil {
		return err
	}
	const together = 1000
	batch := []metadata.Command{mkdir("/d")}
	for i := 0; i < n && err == nil; i++ {
		if i%1000 == 0 {
			batch = append(batch, mkdir("/d/"+strconv.Itoa(i/1000)))
		}
		batch = append(batch, mkdir(fmt.Sprintf("/d/%d/%d", i/1000, i%1000)))
		if len(batch) < together && i < n-1 {
			continue
		}
		for _, r := range s.Do(ctx, batch) {
			err = errors.Join(err, r.Err)
		}
		batch = batch[:0]
	}
	if err = errors.Join(err, j.Close()); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}
