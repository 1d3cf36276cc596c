package userspace

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace/dataplane"
	"skerry/internal/link/userspace/device"
	"skerry/internal/link/userspace/scheduling"
)

const (
	// threads move packets: one for each of two processors, so that one of them may be taken
	// away. More than the machine has processors would take them from each other.
	threads = 2
	// spareProcs is how many Go processors there are beyond the machine's cores: the
	// data plane keeps one for each thread even while it sleeps.
	spareProcs = threads + 1
	// memoryShare of the machine's memory may hold packets in flight: 4 is a quarter.
	memoryShare = 4
)

// Main is the emulator's process. It reads its configuration, one line, from in, writes
// one line to out once it listens, and returns when ctx ends, when it is told to shut
// down or, if configured so, when in ends. All devices are gone then.
//
// It changes the whole process (priority, GOMAXPROCS, umask) and is not for use within
// another program.
func Main(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	buffered := bufio.NewReader(in)
	c, err := readConfig(buffered)
	if err != nil {
		return err
	}
	a, err := newAgent(c, stop, log)
	if sayErr := json.NewEncoder(out).Encode(ready{Error: encodeError(err)}); err == nil && sayErr != nil {
		err = errors.Join(fmt.Errorf("report being ready: %w", sayErr), a.close())
	}
	if err != nil {
		return err
	}
	if c.ExitWithOwner {
		go func() { // ends with the process: a read from standard input cannot be called off
			_, _ = io.Copy(io.Discard, buffered) // however it ends, the owner is gone
			stop()
		}()
	}
	following, stopFollowing := context.WithCancel(ctx)
	var followers sync.WaitGroup
	followers.Go(func() { a.probePaths(following) })
	if !c.ExitWithOwner {
		followers.Go(func() { a.exitWhenUnreachable(following) })
	}
	a.serve(ctx)
	stopFollowing()
	followers.Wait()
	return a.close()
}

func readConfig(in *bufio.Reader) (config, error) {
	var c config
	line, err := in.ReadBytes('\n')
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	if err := json.Unmarshal(line, &c); err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	return c, nil
}

// agent is the process: a server and the socket it is reached by.
type agent struct {
	*server
	listener net.Listener
	log      *slog.Logger
}

func newAgent(c config, stop context.CancelFunc, log *slog.Logger) (*agent, error) {
	kind, err := Available()
	if err != nil {
		return nil, err
	}
	if c.Kind != "" {
		kind = c.Kind
	}
	unix.Umask(0o077) // the socket is the owner's alone
	runtime.GOMAXPROCS(runtime.NumCPU() + spareProcs)
	h := hello{PID: os.Getpid(), Kind: kind, RealTime: true}
	if err := scheduling.RaiseProcess(); err != nil {
		h.RealTime, h.Reason = false, err.Error()
		log.Warn("links may be late on a busy machine", "reason", err)
	}
	raiseFileLimit()
	a := &agent{log: log}
	a.server, err = newServer(h, c.Threads)
	if err != nil {
		return nil, err
	}
	a.stop = stop
	if a.listener, err = listen(c.Socket); err != nil {
		return nil, errors.Join(err, a.server.close())
	}
	return a, nil
}

// newServer starts a data plane of as many threads as were asked for, 0 for the usual.
func newServer(h hello, asked int) (*server, error) {
	maker, err := device.NewMaker(h.Kind)
	if err != nil {
		return nil, err
	}
	processors := runtime.NumCPU()
	options := dataplane.Options{
		Threads:  min(cmp.Or(asked, threads), processors),
		SpareCPU: asked > 0 || processors > threads,
		Memory:   totalMemory() / memoryShare, RealTime: h.RealTime,
	}
	if h.RealTime {
		options.Prepare = func(thread int) {
			// Where it is refused, the kernel chooses: two threads may meet on one processor.
			_ = scheduling.PinThread(thread, options.Threads)
		}
	}
	plane, err := dataplane.Start(options)
	if err != nil {
		return nil, errors.Join(err, maker.Close())
	}
	return &server{hello: h, plane: plane, maker: maker, links: map[string]*dataplane.Link{}}, nil
}

// close removes what the server holds.
func (s *server) close() error {
	return errors.Join(s.removeAll(context.Background()), s.plane.Stop(), s.maker.Close())
}

func (a *agent) close() error { return a.server.close() }

// totalMemory is the machine's, in bytes.
func totalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 4 << 30
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// raiseFileLimit makes room for two devices per link.
func raiseFileLimit() {
	const wanted = 1 << 16
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= wanted {
		return
	}
	raised := unix.Rlimit{Cur: wanted, Max: max(wanted, limit.Max)}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) != nil {
		// Without the right to go beyond, up to what is allowed.
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit.Max, Max: limit.Max})
	}
}
