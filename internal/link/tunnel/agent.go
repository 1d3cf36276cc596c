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

// job is the first line that the process reads.
type job struct {
	Specs []Spec `json:"specs,omitempty"`
	Mesh  *Mesh  `json:"mesh,omitempty"`
	// ExitWithOwner ends the process when its standard input ends.
	ExitWithOwner bool `json:"exit_with_owner"`
}

// answer is the line that it writes once the tunnels are there.
type answer struct {
	Error string `json:"error,omitempty"`
}

// Main is the process that moves the packets of tunnels. It reads its job, one line, from
// in, writes one line to out when the tunnels are there, and returns when ctx ends or, if
// the job says so, when in ends. All devices are gone then.
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
		// All links between machines wait for it, as they do for the emulator: a database that keeps every
		// core busy would add milliseconds to them. It has no rests as the emulator has (dataplane/rest.go): before
		// Linux 6.12 a stream that fills a processor with encryption may be stopped for 50 ms a second.
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
		go func() { // ends with the process: a read from standard input cannot be called off
			_, _ = io.Copy(io.Discard, buffered) // however it ends, the owner is gone
			stop()
		}()
	}
	<-ctx.Done()
	return nil
}

// openEndpoints makes all ends; those that were made come with an error, too.
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

// raiseFileLimit makes room for a device and a socket per end.
func raiseFileLimit() {
	const wanted = 1 << 16
	limit := unix.Rlimit{Cur: wanted, Max: wanted}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) != nil && unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		// Without the right to go beyond, up to what is allowed.
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit.Max, Max: limit.Max})
	}
}
