package tunnel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/realtime"
)

// job is the line on standard input.
type job struct {
	Specs []Spec `json:"specs,omitempty"`
	Mesh  *Mesh  `json:"mesh,omitempty"`
	// ExitWithOwner ends the process at the end of its standard input.
	ExitWithOwner bool `json:"exit_with_owner"`
}

// answer is the line on standard output, written when the tunnels exist or failed.
type answer struct {
	Error string `json:"error,omitempty"`
}

// Main runs the process that forwards the packets of tunnels. It reads one line from in, writes one line to out when
// the tunnels exist, and returns when ctx ends or, with ExitWithOwner, when in ends. All devices are removed then.
func Main(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	buffered := bufio.NewReader(in)
	var j job
	line, err := buffered.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &j)
	}
	if err != nil {
		return fmt.Errorf("read the tunnels to make: %w", err)
	}
	raiseFileLimit()
	if j.Mesh != nil {
		// All links between machines depend on this process, as on the emulator: a database that keeps every core
		// busy would add milliseconds. The process does not rest as the emulator does (dataplane/rest.go). Before
		// Linux 6.12 a stream that fills a processor with encryption may stop for 50 ms per second.
		realtime.RaisePermanently()
	}
	ends, err := openEndpoints(ctx, j.Specs, log)
	if err == nil && j.Mesh != nil {
		var e endpoint
		if e, err = j.Mesh.open(log); err == nil {
			ends = append(ends, e)
		}
	}
	if err == nil {
		callers := slices.Clone(ends)
		err = handshake(ctx, slices.DeleteFunc(callers, func(e endpoint) bool { return !e.initiates }))
	}
	defer func() {
		for _, e := range ends {
			if e.Device != nil {
				e.Close()
			}
		}
	}()
	var a answer
	if err != nil {
		a.Error = err.Error()
	}
	if err := errors.Join(err, json.NewEncoder(out).Encode(a)); err != nil {
		return err
	}
	if j.ExitWithOwner {
		go func() { // a pending read from standard input cannot be cancelled
			_, _ = io.Copy(io.Discard, buffered) // the owner has ended, with or without a read error
			stop()
		}()
	}
	<-ctx.Done()
	return nil
}

// openEndpoints opens all ends. On an error it also returns the ends that were opened.
func openEndpoints(ctx context.Context, specs []Spec, log *slog.Logger) ([]endpoint, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	var mu sync.Mutex
	var ends []endpoint
	for _, s := range specs {
		for i, pair := range [][2]End{{s.A, s.B}, {s.B, s.A}} {
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				e, err := openEndpoint(pair[0], pair[1], log)
				if err != nil {
					return err
				}
				e.initiates = i == 0
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, e)
				return nil
			})
		}
	}
	err := g.Wait()
	return ends, err
}

// raiseFileLimit allows a device and a socket per end.
func raiseFileLimit() {
	const wanted = 1 << 16
	limit := unix.Rlimit{Cur: wanted, Max: wanted}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) != nil && unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		// Without CAP_SYS_RESOURCE the hard limit is the maximum.
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit.Max, Max: limit.Max})
	}
}
