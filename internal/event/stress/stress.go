// Package stress is programs that use up what a node has: its cores, its memory, its
// links. Each runs as a process of its own on the node ("skerry agent stress"), so that it
// counts there, and ends when its standard input does: with whoever started it.
package stress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
)

// Ready begins the first line that a program writes, once it does what it was asked for.
// A sink adds the port that it listens on.
const Ready = "ready"

// ErrInput says that the arguments make no sense.
var ErrInput = errors.New("wrong arguments")

// Load uses something up until ctx ends. It calls ready once it does.
type Load func(ctx context.Context, ready func(more ...any) error) error

// Run runs a load until its input ends, or it fails.
func Run(ctx context.Context, in io.Reader, out io.Writer, load Load) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() { // it cannot be called off: it ends with the process
		_, _ = io.Copy(io.Discard, in)
		end()
	}()
	return load(ctx, func(more ...any) error {
		_, err := fmt.Fprintln(out, append([]any{Ready}, more...)...)
		return err
	})
}

// slice is the period in which a part of a core is used: as short as the CPU quotas of
// nodes, so that the load is even.
const slice = 10 * time.Millisecond

// CPU keeps so many cores busy; 1.5 is one of them always and one half of the time.
func CPU(cores float64) Load {
	return func(ctx context.Context, ready func(...any) error) error {
		if !(cores > 0) || cores > 1024 {
			return fmt.Errorf("%w: %g cores", ErrInput, cores)
		}
		runtime.GOMAXPROCS(int(cores) + 2) // and one for whoever ends this
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

// burn uses a share of one core.
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
	// chunk is how much is taken at a time.
	chunk = 16 << 20
	// reserve is what the machine keeps whatever is asked for.
	reserve = 512 << 20
)

// ErrMachine says that the machine has not got what was asked for.
var ErrMachine = errors.New("the machine cannot give that much")

// Memory takes and keeps so many bytes. Where memory runs out it is what the kernel kills
// first.
func Memory(bytes int64) Load {
	return func(ctx context.Context, ready func(...any) error) error {
		if bytes <= 0 {
			return fmt.Errorf("%w: %d bytes", ErrInput, bytes)
		}
		free, err := availableMemory()
		if err != nil {
			return err
		}
		if bytes > free-reserve {
			return fmt.Errorf("%w: %d MiB are asked for, %d MiB are free and %d MiB stay so", ErrMachine, bytes>>20, free>>20, reserve>>20)
		}
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
			return fmt.Errorf("being the first to be killed: %w", err)
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

// touchMemory maps memory and touches every page of it. It goes with the process.
func touchMemory(bytes int) error {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("taking %d bytes: %w", bytes, err)
	}
	for i := 0; i < len(m); i += os.Getpagesize() {
		m[i] = 1
	}
	return nil
}

// availableMemory is what programs can still take without others being pushed out.
func availableMemory() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading free memory: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "MemAvailable:" {
			kb, err := strconv.ParseInt(words[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("reading free memory: the kernel does not tell")
}

// A theft lasts as long as a busy host keeps a virtual processor from its guest: a few of its
// scheduler's slices.
const (
	minSteal = 5 * time.Millisecond
	maxSteal = 30 * time.Millisecond
)

// Steal takes one of the machine's processors away, now this one and now that one, for 5 to 30 ms
// at a time and such a share of all time, 0 to 0.9: what stands on it stands still, as where a
// host gives a virtual processor to others. It needs the right to the highest real-time
// priority, and tasks that are pinned to processors; others the kernel moves away.
func Steal(share float64, seed uint64) Load {
	return func(ctx context.Context, ready func(...any) error) error {
		if !(share > 0) || share > 0.9 {
			return fmt.Errorf("%w: a share of %g", ErrInput, share)
		}
		runtime.LockOSThread() // ends with the goroutine: its priority is not to be passed on
		var allowed unix.CPUSet
		if err := unix.SchedGetaffinity(0, &allowed); err != nil {
			return fmt.Errorf("asking for processors: %w", err)
		}
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 99}, 0); err != nil {
			return fmt.Errorf("taking the highest priority: %w", err)
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
			_ = linger.For(ctx, time.Duration(gap)) // the loop looks at the context
		}
		return nil
	}
}

// nthAllowed is the number of the n-th one allowed.
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
		return fmt.Errorf("moving to processor %d: %w", cpu, err)
	}
	return nil
}
