package event

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/event/stress"
	"skerry/internal/machine/host"
)

const (
	// programReady is how long a program may take until it does what it is to do: taking
	// gigabytes of memory takes seconds.
	readyTimeout = 30 * time.Second
	// programGrace is what it gets between the end of its input and SIGKILL.
	stopGrace = 2 * time.Second
	// keptComplaint is how much of its standard error an error shows, in bytes.
	stderrTail = 1 << 10
)

// programSet is what an event has running on nodes.
type programSet struct {
	started []*stressProgram
	once    sync.Once
	failed  chan struct{} // closed when one ended that was not asked to
	mu      sync.Mutex
	cause   error
	ending  bool
	waiting sync.WaitGroup
}

// stressProgram is one of them.
type stressProgram struct {
	node    string
	process host.Process
	input   *io.PipeWriter // it ends with this
	output  *io.PipeReader
	stderr  *tail.Tail
}

func newPrograms() *programSet { return &programSet{failed: make(chan struct{})} }

// start runs "skerry agent stress ARGS" on a node and returns what it says once it is ready.
func (s *programSet) start(ctx context.Context, w *Testbed, node string, args ...string) (string, error) {
	h, err := w.Host(node)
	if err != nil {
		return "", err
	}
	exe, err := w.Exe(node)
	if err != nil {
		return "", err
	}
	in, input := io.Pipe()
	output, out := io.Pipe()
	x := &stressProgram{node: node, input: input, output: output, stderr: tail.New(stderrTail)}
	x.process, err = h.Start(ctx, host.Command{
		Name: "stress", Path: exe, Args: append([]string{"agent", "stress"}, args...),
		Log: filepath.Join(h.Dir(), "stress.log"), Stdin: in, Stdout: out, Stderr: x.stderr,
	})
	if err != nil {
		return "", errors.Join(err, in.Close())
	}
	s.started = append(s.started, x)
	s.waiting.Go(func() {
		<-x.process.Done()
		_ = in.Close()  // a process that ended by itself leaves its reader behind
		_ = out.Close() // and what reads of it
		s.reportLoss(fmt.Errorf("%s on %s: %w: %s", args[0], node, ErrEnded, x.stderr.String()))
	})
	return x.awaitReady(ctx)
}

// awaitReady returns the words after "ready" on the program's first line.
func (x *stressProgram) awaitReady(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = x.output.CloseWithError(ctx.Err()) })
	defer stop()
	line, err := bufio.NewReader(x.output).ReadString('\n')
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), stress.Ready)
	if err != nil || !ok {
		return "", fmt.Errorf("on %s: %w: %s", x.node, errors.Join(ErrEnded, err), x.stderr.String())
	}
	return strings.TrimSpace(rest), nil
}

func (s *programSet) reportLoss(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return
	}
	s.once.Do(func() {
		s.cause = why
		close(s.failed)
	})
}

// stop ends all of them.
func (s *programSet) stop(ctx context.Context) error {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	var errs []error
	for _, x := range s.started {
		_ = x.input.Close() // a pipe's end closes without an error
	}
	for _, x := range s.started {
		select {
		case <-x.process.Done():
		case <-time.After(stopGrace):
			errs = append(errs, x.process.Kill())
		case <-ctx.Done():
			errs = append(errs, x.process.Kill())
		}
		_ = x.output.Close()
	}
	s.waiting.Wait()
	s.started = nil
	return errors.Join(errs...)
}

func (s *programSet) ended() <-chan struct{} { return s.failed }

func (s *programSet) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}
