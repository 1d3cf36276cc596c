package userspace

import (
	"bufio"
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
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/kernel/helperproc"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/realtime"
	"skerry/internal/link"
	"skerry/internal/link/userspace/dataplane"
	"skerry/internal/link/userspace/device"
)

const (
	// threads is the default number of packet threads: two, so that one of them may lose its processor.
	// More threads than processors would compete with each other.
	threads = 2
	// spareProcs is the number of Go processors beyond the machine's cores. Each packet thread keeps
	// one even while it sleeps.
	spareProcs = threads + 1
	// memoryShare is the divisor of the machine's memory that packets in flight may use.
	memoryShare = 4
)

// Main runs the emulator's process. It reads one line of configuration from in and writes one line to
// out once it listens. It returns when ctx ends, on a shutdown request or, if configured, at the end
// of in; all devices are removed then.
//
// Main changes the priority, GOMAXPROCS and umask of the whole process. Do not call it in another program.
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
		go func() { // a pending read from standard input cannot be cancelled
			_, _ = io.Copy(io.Discard, buffered) // the owner has ended, with or without a read error
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

// agent is the emulator's process: a server and its socket.
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
	unix.Umask(0o077) // only the owner may use the socket
	runtime.GOMAXPROCS(runtime.NumCPU() + spareProcs)
	h := hello{PID: os.Getpid(), Kind: kind, RealTime: true}
	if err := realtime.RaiseProcess(); err != nil {
		h.RealTime, h.Reason = false, err.Error()
		log.Warn("links may be late on a busy machine", "reason", err)
	}
	helperproc.RaiseFileLimit() // two open devices per link
	a := &agent{log: log}
	a.server, err = newServer(h)
	if err != nil {
		return nil, err
	}
	a.stop = stop
	if a.listener, err = listen(c.Socket); err != nil {
		return nil, errors.Join(err, a.server.close())
	}
	return a, nil
}

// newServer starts a data plane. The second thread takes a share of the packets only if a third processor is left for
// senders and receivers; otherwise it replaces the first thread when that one loses its processor.
func newServer(h hello) (*server, error) {
	maker, err := device.NewMaker(h.Kind)
	if err != nil {
		return nil, err
	}
	processors := runtime.NumCPU()
	options := dataplane.Options{
		Threads:  min(threads, processors),
		SpareCPU: processors > threads,
		Memory:   totalMemory() / memoryShare, RealTime: h.RealTime,
	}
	if h.RealTime {
		options.Prepare = func(thread int) {
			// If pinning is refused, the kernel places the threads.
			_ = realtime.PinThread(thread, options.Threads)
		}
	}
	plane, err := dataplane.Start(options)
	if err != nil {
		return nil, errors.Join(err, maker.Close())
	}
	return &server{hello: h, plane: plane, maker: maker, links: map[string]*dataplane.Link{}}, nil
}

func (s *server) close() error {
	return errors.Join(s.removeAll(context.Background()), s.plane.Stop(), s.maker.Close())
}

func (a *agent) close() error { return a.server.close() }

// totalMemory returns the machine's memory in bytes.
func totalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 4 << 30
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// namespacePoll is the interval at which an emulator without an owner checks its namespaces.
const namespacePoll = 2 * time.Second

// namespaces are the namespaces in which links end, by path.
//
// An emulator without an owner is ended by `lab down`. If the mounts of the lab's namespaces were removed by
// hand, no command can enter the namespaces or end the lab. The emulator would then run forever at a real-time
// priority, because its devices keep the namespaces alive. So it ends when no path leads to its namespace.
type namespaces struct {
	mu   sync.Mutex
	seen map[string]os.FileInfo
}

func (s *namespaces) add(specs []link.Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]os.FileInfo{}
	}
	for _, spec := range specs {
		for _, path := range []string{spec.A.Netns, spec.B.Netns} {
			if _, known := s.seen[path]; known || path == netns.OwnPath { // always reachable
				continue
			}
			if info, err := os.Stat(path); err == nil { // the path may already be gone
				s.seen[path] = info
			}
		}
	}
}

// unreachable reports whether namespaces were added and none of them can be reached by its path.
func (s *namespaces) unreachable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, was := range s.seen {
		if is, err := os.Stat(path); err == nil && os.SameFile(was, is) {
			return false
		}
	}
	return len(s.seen) > 0
}

// exitWhenUnreachable ends the process once no namespace can be reached. It returns when ctx ends.
func (a *agent) exitWhenUnreachable(ctx context.Context) {
	for linger.For(ctx, namespacePoll) == nil {
		if a.spaces.unreachable() {
			a.log.Error("emulator ends: no path leads to its links' network namespaces")
			a.stop()
			return
		}
	}
}
