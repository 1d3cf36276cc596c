// Package stress implements the helper programs that consume a node's CPU, memory or network. Each
// runs on the node as its own process ("skerry agent stress"), so that its use counts for the node.
// It ends when its standard input is closed, also by the death of its parent.
package stress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/kernel/procfs"
)

// Ready starts the first line of output, which a program writes once the load is in place. A sink
// appends its port.
const Ready = "ready"

var errInput = errors.New("invalid arguments")

// Stressor generates load until ctx ends. It calls ready once the load is in place.
type Stressor func(ctx context.Context, ready func(more ...any) error) error

// Run runs a load until in ends or the load fails.
func Run(ctx context.Context, in io.Reader, out io.Writer, load Stressor) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() { // cannot be cancelled: ends with the process
		_, _ = io.Copy(io.Discard, in)
		end()
	}()
	return load(ctx, func(more ...any) error {
		_, err := fmt.Fprintln(out, append([]any{Ready}, more...)...)
		return err
	})
}

// slice is the duty cycle of a partly used core. It is as short as the CPU quota period of nodes,
// so that the load is even.
const slice = 10 * time.Millisecond

// CPU keeps cores busy; 1.5 is one core all the time and one half of the time.
func CPU(cores float64) Stressor {
	return func(ctx context.Context, ready func(...any) error) error {
		if !(cores > 0) || cores > 1024 {
			return fmt.Errorf("%w: %g cores", errInput, cores)
		}
		runtime.GOMAXPROCS(int(cores) + 2) // one more to handle the end
		var burning sync.WaitGroup
		for left := cores; left > 0; left-- {
			share := min(left, 1)
			burning.Go(func() { burn(ctx, share) })
		}
		err := ready()
		burning.Wait()
		return err
	}
}

func burn(ctx context.Context, share float64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		begin := time.Now()
		for busy := time.Duration(share * float64(slice)); time.Since(begin) < busy; {
		}
		if share < 1 {
			time.Sleep(slice - time.Since(begin))
		}
	}
}

const (
	chunk = 16 << 20
	// reserve always stays free on the machine.
	reserve = 512 << 20
)

// errMemory means that the machine has too little free memory.
var errMemory = errors.New("not enough free memory")

// Memory allocates and holds bytes. If the node runs out of memory, the kernel kills this process
// first.
func Memory(bytes int64) Stressor {
	return func(ctx context.Context, ready func(...any) error) error {
		if bytes <= 0 {
			return fmt.Errorf("%w: %d bytes", errInput, bytes)
		}
		free, err := procfs.AvailableMemory()
		if err != nil {
			return err
		}
		if bytes > free-reserve {
			return fmt.Errorf("%w: want %d MiB, have %d MiB and must keep %d MiB free", errMemory, bytes>>20, free>>20, reserve>>20)
		}
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
			return fmt.Errorf("set the OOM score: %w", err)
		}
		for left := bytes; left > 0 && ctx.Err() == nil; left -= chunk {
			if err := touchMemory(int(min(left, chunk))); err != nil {
				return err
			}
		}
		err = ready()
		<-ctx.Done()
		return err
	}
}

func touchMemory(bytes int) error {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("allocate %d bytes: %w", bytes, err)
	}
	for i := 0; i < len(m); i += os.Getpagesize() {
		m[i] = 1
	}
	return nil
}

// A steal lasts a few scheduler slices, as when a busy host takes a virtual processor from its
// guest.
const (
	minSteal = 5 * time.Millisecond
	maxSteal = 30 * time.Millisecond
)

// Steal occupies one random processor of the machine for 5 to 30 ms at a time, for a share of all
// time between 0 and 0.9. Tasks that are pinned to the processor stop meanwhile, as when a host
// takes a virtual processor away; the kernel moves other tasks. Steal needs the right to the
// highest real-time priority.
func Steal(share float64, seed uint64) Stressor {
	return func(ctx context.Context, ready func(...any) error) error {
		if !(share > 0) || share > 0.9 {
			return fmt.Errorf("%w: share %g", errInput, share)
		}
		runtime.LockOSThread() // never unlocked: the thread, with its priority, ends with the goroutine
		var allowed unix.CPUSet
		if err := unix.SchedGetaffinity(0, &allowed); err != nil {
			return fmt.Errorf("get the CPU affinity: %w", err)
		}
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 99}, 0); err != nil {
			return fmt.Errorf("set the real-time priority: %w", err)
		}
		if err := ready(); err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(seed, 0))
		for ctx.Err() == nil {
			theft := minSteal + time.Duration(random.Int64N(int64(maxSteal-minSteal)))
			if err := pinTo(nthAllowed(&allowed, random.IntN(allowed.Count()))); err != nil {
				return err
			}
			for begin := time.Now(); time.Since(begin) < theft; {
			}
			gap := float64(theft) * (1 - share) / share * (0.5 + random.Float64())
			_ = linger.For(ctx, time.Duration(gap)) // the loop checks the context
		}
		return nil
	}
}

func nthAllowed(allowed *unix.CPUSet, n int) int {
	for cpu := 0; ; cpu++ {
		if !allowed.IsSet(cpu) {
			continue
		}
		if n == 0 {
			return cpu
		}
		n--
	}
}

func pinTo(cpu int) error {
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("set the CPU affinity to %d: %w", cpu, err)
	}
	return nil
}
