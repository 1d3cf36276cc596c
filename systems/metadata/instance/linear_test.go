package instance_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"skerry/systems/consensus"
	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/instance"
	"skerry/systems/metadata/protocol"
	"skerry/test/testkit"
)

// TestMain makes the test binary run a replica for the arguments `replica ADDR DIR NAME NAME=PEER...`.
func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == "replica" {
		o := instance.Options{
			Listen: os.Args[2], Dir: os.Args[3], Log: slog.New(slog.DiscardHandler),
			Group: &instance.ReplicaGroup{Cluster: "tree", Name: os.Args[4], Members: os.Args[5:]},
			Ready: func(net.Addr, protocol.LogRecovery) error { _, err := fmt.Println("ready"); return err },
		}
		if err := instance.Run(context.Background(), o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// process is a replica process.
type process struct {
	args []string
	addr string
	cmd  *exec.Cmd
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0], p.args...)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("unexpected output of the replica: %q, %v", line, err)
	}
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	if s == syscall.SIGKILL {
		_ = p.cmd.Wait() // killed
	}
}

func processes(t *testing.T, n int) []*process {
	t.Helper()
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("m%d=%s", i+1, testkit.Address(t)))
	}
	var all []*process
	for i := range n {
		name := fmt.Sprintf("m%d", i+1)
		p := &process{addr: testkit.Address(t)}
		p.args = append([]string{"replica", p.addr, filepath.Join(t.TempDir(), name), name}, members...)
		p.start(t)
		t.Cleanup(func() {
			p.signal(t, syscall.SIGCONT)
			p.signal(t, syscall.SIGKILL)
		})
		all = append(all, p)
	}
	return all
}

// leader returns the process that the group reports as its leader.
func leader(t *testing.T, all []*process) *process {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, p := range all {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			c := client.New(p.addr)
			s, err := c.Status(ctx)
			cancel()
			c.Close()
			if err != nil || s.Group == nil {
				continue
			}
			for i := range all {
				if s.Group.Leader == consensus.MemberID("m"+strconv.Itoa(i+1)) {
					return all[i]
				}
			}
		}
	}
	t.Fatal("no leader")
	return nil
}

// The model: a directory with few names, as a set of bits.
type (
	asked struct {
		op   metadata.Op
		name int
	}
	told struct {
		unknown bool // the change may or may not have been made, at any time after its call
		err     error
		held    uint // List: the names
	}
)

const names = 4

var directory = porcupine.Model{
	Init: func() any { return uint(0) },
	Step: func(state, input, output any) (bool, any) {
		held, in, out := state.(uint), input.(asked), output.(told)
		bit := uint(1) << in.name
		there := held&bit != 0
		switch in.op {
		case metadata.List:
			return out.held == held, held
		case metadata.Stat:
			return (out.err == nil) == there, held
		case metadata.Mkdir:
			return out.unknown || (out.err == nil) != there, held | bit
		}
		return out.unknown || (out.err == nil) == there, held &^ bit
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// attempt runs one operation of a client. ok is false if the operation had no result and no effect.
func attempt(ctx context.Context, c *client.Client, dir string, in asked) (out told, ok bool) {
	command := metadata.Command{Op: in.op, Path: dir + "/" + strconv.Itoa(in.name)}
	if in.op == metadata.List {
		command.Path = dir
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r := c.DoOne(ctx, command)
	var dial *net.OpError
	switch {
	case r.Err == nil:
		for _, e := range r.Entries {
			if n, err := strconv.Atoi(e.Name); err == nil && in.op == metadata.List {
				out.held |= 1 << n
			}
		}
		return out, true
	case !errors.Is(r.Err, metadata.ErrUnavailable):
		return told{err: r.Err}, true
	case !in.op.Changes(), errors.As(r.Err, &dial) && dial.Op == "dial", strings.Contains(r.Err.Error(), "nothing was changed"):
		return out, false
	}
	return told{unknown: true}, true
}

// TestLinearizable compares a group's answers with a sequential directory while its leader is killed (SIGKILL) and
// paused (SIGSTOP). SKERRY_METADATA_LINEAR is the duration, such as 10m.
func TestLinearizable(t *testing.T) {
	var long time.Duration
	if text := os.Getenv("SKERRY_METADATA_LINEAR"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	all := processes(t, 3)
	began := time.Now()
	for seed := uint64(1); seed == 1 || time.Since(began) < long; seed++ {
		round(t, all, seed)
	}
}

// round records a history with both faults.
func round(t *testing.T, all []*process, seed uint64) {
	t.Helper()
	const workers, each = 4, 45
	setup := client.New(all[0].addr)
	defer setup.Close()
	// A change in doubt may still be made in a later round, so each round has its own directory.
	dir := "/d" + strconv.FormatUint(seed, 10)
	if r := one(t, setup, "mkdir "+dir); r.Err != nil && !errors.Is(r.Err, metadata.ErrExists) {
		t.Fatal(r.Err)
	}
	start := time.Now()
	history := make([][]porcupine.Operation, workers)
	var wg sync.WaitGroup
	half := make(chan struct{}, workers)
	for w := range workers {
		wg.Go(func() {
			c := client.New(all[w%len(all)].addr + "," + all[(w+1)%len(all)].addr)
			defer c.Close()
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			client := w
			for i := 0; i < each && time.Since(start) < patience; {
				in := asked{[]metadata.Op{metadata.Mkdir, metadata.Rmdir, metadata.Stat, metadata.List}[r.IntN(4)], r.IntN(names)}
				call := time.Since(start)
				out, ok := attempt(t.Context(), c, dir, in)
				back := time.Since(start)
				if !ok {
					continue
				}
				o := porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: int64(back)}
				if out.unknown {
					o.Return = math.MaxInt64
					client += workers // a client in doubt continues under a new id
				}
				history[w] = append(history[w], o)
				if i++; i == each/3 || i == 2*each/3 {
					half <- struct{}{}
				}
			}
		})
	}
	await := func(n int) {
		for range n {
			select {
			case <-half:
			case <-time.After(patience):
				t.Fatal("the clients made no progress")
			}
		}
	}
	await(1)
	killed := leader(t, all)
	killed.signal(t, syscall.SIGKILL)
	await(workers)
	killed.start(t)
	paused := leader(t, all)
	paused.signal(t, syscall.SIGSTOP)
	resumed := time.AfterFunc(2*time.Second, func() { paused.signal(t, syscall.SIGCONT) })
	wg.Wait()
	if resumed.Stop() {
		paused.signal(t, syscall.SIGCONT)
	}
	h := slices.Concat(history...)
	if len(h) < workers*each {
		t.Fatalf("seed %d: %d operations were answered", seed, len(h))
	}
	if porcupine.CheckOperationsTimeout(directory, h, patience) == porcupine.Illegal {
		slices.SortFunc(h, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for _, o := range h {
			t.Logf("%d %d-%d %s", o.ClientId, o.Call, o.Return, directory.DescribeOperation(o.Input, o.Output))
		}
		t.Fatalf("seed %d: not linearizable", seed)
	}
}
