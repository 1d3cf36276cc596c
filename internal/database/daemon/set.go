package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Set holds all server processes of a cluster. The zero Set is empty; it must not be copied.
type Set struct {
	mu      sync.Mutex
	daemons []*Daemon
	logs    map[string]files.File // of every server that was ever started
	err     error
	failed  chan struct{} // closed when err is set
	stopped bool

	watchers sync.WaitGroup
}

// Start starts a server, continues its log, and watches its process. It does not wait until the server serves.
func (s *Set) Start(ctx context.Context, h host.Host, spec Spec) (*Daemon, error) {
	d, err := start(ctx, h, spec)
	if err != nil {
		return nil, err
	}
	if !s.add(d) {
		return nil, errors.Join(fmt.Errorf("starting %s on %s: %w", d.Name(), h.Name(), ErrStopped), d.Kill())
	}
	return d, nil
}

func (s *Set) add(d *Daemon) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	if s.logs == nil {
		s.logs = make(map[string]files.File)
	}
	s.daemons = append(s.daemons, d)
	s.logs[d.Name()+"-"+d.Host.Name()] = files.File{On: d.Host.Files(), Path: d.spec.Command.Log}
	s.watchers.Go(func() {
		<-d.Done()
		s.mu.Lock()
		s.daemons = slices.DeleteFunc(s.daemons, func(o *Daemon) bool { return o == d })
		s.mu.Unlock()
		if d.isFailure() {
			s.Fail(d.endError())
		}
	})
	return true
}

// Fail marks the set as failed because of an event outside its processes. Only the first error counts.
func (s *Set) Fail(err error) {
	failed := s.Failed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(failed)
	}
}

// Failed is closed when a server has exited unexpectedly.
func (s *Set) Failed() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = make(chan struct{})
	}
	return s.failed
}

// Err returns the error of the first server that exited unexpectedly, nil if none did.
func (s *Set) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// RunningOn returns the servers that run on a node, in start order.
func (s *Set) RunningOn(node string) []*Daemon {
	s.mu.Lock()
	defer s.mu.Unlock()
	var on []*Daemon
	for _, d := range s.daemons {
		if d.Host.Name() == node && d.Running() {
			on = append(on, d)
		}
	}
	return on
}

// Logs maps "server-node" to its log.
func (s *Set) Logs() map[string]files.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.logs)
}

// Await polls ask until it returns nil. It gives up when a server ends by itself, and with ctx.
func (s *Set) Await(ctx context.Context, ask func(context.Context) error) error {
	failed := s.Failed()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-failed:
			return s.Err()
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(poll):
		}
	}
}

// Stop ends all servers at the same time and waits for them. It may be called twice.
func (s *Set) Stop(ctx context.Context) error {
	return s.endAll(func(d *Daemon) error { return d.Stop(ctx) })
}

// Kill is Stop with SIGKILL.
func (s *Set) Kill() error { return s.endAll((*Daemon).Kill) }

func (s *Set) endAll(one func(*Daemon) error) error {
	s.mu.Lock()
	s.stopped = true
	daemons := slices.Clone(s.daemons)
	s.mu.Unlock()
	errs := make([]error, len(daemons))
	var all sync.WaitGroup
	for i, d := range daemons {
		all.Go(func() { errs[i] = one(d) })
	}
	all.Wait()
	s.watchers.Wait()
	return errors.Join(errs...)
}
