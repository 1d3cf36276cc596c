package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/machine/host"
)

// Service is one process of a deployment.
type Service struct {
	Name  string
	Kind  Kind
	Cloud string
	Host  host.Host
	Args  []string // of skerry
	// URL is the service's address; dns://HOST:PORT of the DNS server.
	URL string
	// Ready is polled until it answers 2xx, or, as dns://HOST:PORT/NAME, until the name has an address.
	Ready string
}

type Kind string

const (
	Member    Kind = "member"
	Witness   Kind = "witness"
	Balancer  Kind = "lb"
	Wallet    Kind = "wallet"
	DNSServer Kind = "dns"
)

// grace is the time between SIGTERM and SIGKILL.
const grace = 10 * time.Second

type supervised struct {
	Service
	exe     string
	restart time.Duration // delay before a restart, 0 for never
	log     *slog.Logger

	mu      sync.Mutex
	process host.Process
	held    bool          // killed: no restart
	wake    chan struct{} // signals a restart
	ended   chan struct{}
	stop    context.CancelFunc
}

func (s *supervised) start(ctx context.Context) error {
	if err := s.launch(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop, s.ended = stop, make(chan struct{})
	go func() {
		defer close(s.ended)
		s.watch(watching)
	}()
	return nil
}

func (s *supervised) launch(ctx context.Context) error {
	p, err := s.Host.Start(ctx, host.Command{Name: s.Name, Path: s.exe, Args: s.Args, Log: s.logFile()})
	if err != nil {
		return fmt.Errorf("starting %s on %s: %w", s.Name, s.Host.Name(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	return nil
}

func (s *supervised) logFile() string { return filepath.Join(s.Host.Dir(), s.Name+".log") }

func (s *supervised) watch(ctx context.Context) {
	for {
		p := s.current()
		select {
		case <-ctx.Done():
			return
		case <-p.Done():
		}
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("a process ended", "service", s.Name, "error", p.Err(), "log", s.logFile())
		for again := false; !again; {
			var pause <-chan time.Time // nil: no automatic restart
			if s.restart > 0 && !s.isHeld() {
				pause = time.After(s.restart)
			}
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			case <-pause:
				if s.isHeld() {
					continue
				}
			}
			if err := s.launch(ctx); err != nil {
				s.log.Warn("a process cannot be started again", "service", s.Name, "error", err)
				continue
			}
			s.log.Info("a process was started again", "service", s.Name, "pid", s.current().PID())
			again = true
		}
	}
}

func (s *supervised) isHeld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

func (s *supervised) setHeld(held bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.held != held
	s.held = held
	if changed && !held {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return changed
}

func (s *supervised) current() host.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

func (s *supervised) running() bool {
	select {
	case <-s.current().Done():
		return false
	default:
		return true
	}
}

func (s *supervised) exitError() error {
	p := s.current()
	return advice.With(fmt.Errorf("%s on %s ended: %w\n%s", s.Name, s.Host.Name(), errors.Join(p.Err()), p.Tail(8)),
		"its log is %s", s.logFile())
}

func (s *supervised) terminate(ctx context.Context) error {
	s.stop()
	<-s.ended
	if err := s.current().Stop(ctx, grace); err != nil {
		return fmt.Errorf("stopping %s: %w", s.Name, err)
	}
	return nil
}
