package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/systems/hydra/hydraclient"
)

var ErrNotReady = errors.New("not ready in time")

var errStarting = errors.New("not started yet")

const (
	pollEvery    = 50 * time.Millisecond
	readyTimeout = 60 * time.Second
)

// Deployment is a set of running services.
type Deployment struct {
	services []*supervised
	config   hydraclient.Config // for clients of the members
}

// Start starts services in order; each kind waits until the previous one is ready. exe is the program. A service that
// exits is restarted after the given delay, 0 for never. reach configures clients of the members, without endpoints.
func Start(ctx context.Context, exe string, services []Service, restart time.Duration, reach hydraclient.Config,
	log *slog.Logger) (_ *Deployment, err error) {
	d := &Deployment{config: reach}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Stop(context.WithoutCancel(ctx)))
		}
	}()
	for _, s := range services {
		if s.Kind == Member {
			if d.config.Dial == nil {
				d.config.Dial = s.Host.Dial
			}
			_, addr, _ := strings.Cut(s.URL, "://")
			d.config.Endpoints = append(d.config.Endpoints, addr)
		}
	}
	for len(services) > 0 {
		n := slices.IndexFunc(services, func(s Service) bool { return !sameStep(s.Kind, services[0].Kind) })
		if n < 0 {
			n = len(services)
		}
		for _, s := range services[:n] {
			one := &supervised{Service: s, exe: exe, restart: restart, log: log, wake: make(chan struct{}, 1)}
			if err := one.start(ctx); err != nil {
				return nil, err
			}
			d.services = append(d.services, one)
		}
		started := d.services[len(d.services)-n:]
		if err := d.awaitReady(ctx, started); err != nil {
			return nil, err
		}
		services = services[n:]
	}
	return d, nil
}

// sameStep reports whether two kinds start together: members wait for each other.
func sameStep(a, b Kind) bool {
	return a == b || (a == Member || a == Witness) && (b == Member || b == Witness)
}

func (d *Deployment) awaitReady(ctx context.Context, services []*supervised) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, ErrNotReady)
	defer cancel()
	g, asking := errgroup.WithContext(ctx)
	members := false
	for _, s := range services {
		members = members || s.Kind == Member
		g.Go(func() error {
			return d.pollReady(asking, s, func(ctx context.Context) error { return s.CheckReady(ctx, d.config) })
		})
	}
	if err := g.Wait(); err != nil || !members {
		return err
	}
	data, err := hydraclient.New(d.config)
	if err != nil {
		return err
	}
	err = d.pollReady(ctx, services[0], func(ctx context.Context) error { return data.Ready(ctx) })
	return errors.Join(err, data.Close())
}

func (d *Deployment) pollReady(ctx context.Context, s *supervised, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if !s.running() && s.restart == 0 && !errors.Is(err, errStarting) {
			return s.exitError()
		}
		if ended := linger.For(ctx, pollEvery); ended != nil {
			return advice.With(fmt.Errorf("%s on %s: %w: %w\n%s", s.Name, s.Host.Name(), ended, err, s.current().Tail(8)),
				"its log is %s", s.logFile())
		}
	}
}

// State is the state of a service.
type State struct {
	Name    string `json:"name"`
	Kind    Kind   `json:"kind"`
	Cloud   string `json:"cloud,omitempty"`
	Node    string `json:"node"`
	Address string `json:"address"`
	URL     string `json:"url,omitempty"`
	PID     int    `json:"pid"`
	Running bool   `json:"running"`
	Log     string `json:"log"`
}

func (d *Deployment) States() []State {
	all := make([]State, len(d.services))
	for i, s := range d.services {
		all[i] = State{
			Name: s.Name, Kind: s.Kind, Cloud: s.Cloud, Node: s.Host.Name(), Address: s.Host.Addr(), URL: s.URL,
			PID: s.current().PID(), Running: s.running(), Log: s.logFile(),
		}
	}
	return all
}

// DNS returns the DNS server's HOST:PORT, or "".
func (d *Deployment) DNS() string {
	for _, s := range d.services {
		if s.Kind == DNSServer {
			return strings.TrimPrefix(s.URL, "dns://")
		}
	}
	return ""
}

// Kill kills the selected services, which stay down until Revive.
func (d *Deployment) Kill(which func(Service) bool) error {
	var g errgroup.Group
	for _, s := range d.services {
		if !which(s.Service) {
			continue
		}
		s.setHeld(true)
		g.Go(s.current().Kill)
	}
	return g.Wait()
}

// Revive restarts killed services and waits until they are ready.
func (d *Deployment) Revive(ctx context.Context, which func(Service) bool) error {
	var again []*supervised
	for _, s := range d.services {
		if !which(s.Service) || !s.setHeld(false) {
			continue
		}
		again = append(again, s)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, ErrNotReady)
	defer cancel()
	for _, s := range again {
		err := d.pollReady(ctx, s, func(ctx context.Context) error {
			if !s.running() {
				return errStarting
			}
			return s.CheckReady(ctx, d.config)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Stop stops all services in reverse order.
func (d *Deployment) Stop(ctx context.Context) error {
	var errs []error
	for end := len(d.services); end > 0; {
		begin := end - 1
		for begin > 0 && sameStep(d.services[begin-1].Kind, d.services[end-1].Kind) {
			begin--
		}
		var g errgroup.Group
		for _, s := range d.services[begin:end] {
			g.Go(func() error { return s.terminate(ctx) })
		}
		errs = append(errs, g.Wait())
		end = begin
	}
	d.services = nil
	return errors.Join(errs...)
}
