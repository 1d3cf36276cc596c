package hydra

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"skerry/internal/base/bearer"
	"skerry/internal/base/dialtls"
	"skerry/internal/base/webguard"
	"skerry/systems/consensus"
	"skerry/systems/consensus/ca"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
)

// GCPercent is the GOGC of a member, whose live heap is small. Go's default would cost a tenth of a write.
const GCPercent = 400

const (
	openTimeout     = 30 * time.Second
	shutdownTimeout = 5 * time.Second
	forwardIdle     = 64
)

// Service is a member's process: log, database and HTTP interface.
type Service struct {
	config Config
	log    *slog.Logger
	node   *Node
	store  *cloudsql.Store
	raft   *consensus.Node
	server *api.Server
	http   *http.Server
	listen net.Listener
	out    *http.Transport
	served chan error
	id     *ca.Identity // with TLS

	cancel     context.CancelFunc // ends background work
	background sync.WaitGroup
}

// Open starts a member, which serves when Open returns. version is the program's version.
func Open(ctx context.Context, c Config, version string, log *slog.Logger) (_ *Service, err error) {
	if err := c.Complete(); err != nil {
		return nil, err
	}
	s := &Service{config: c, log: log.With("member", c.Name), served: make(chan error, 1)}
	beside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w", err)
	}
	if err := s.loadIdentity(); err != nil {
		return nil, err
	}
	var inbound *tls.Config
	var outbound func() *tls.Config
	if s.id != nil {
		inbound, outbound = s.id.Server(nil, ca.Member, ca.Application), s.id.Client(nil, ca.Member)
		s.background.Go(func() { s.id.Watch(beside, s.log) })
	}
	var tokens *bearer.Tokens
	if c.Tokens != "" {
		if tokens, err = bearer.Load(c.Tokens); err != nil {
			return nil, err
		}
		if bearer.SentUnencrypted(s.id != nil, c.Listen) {
			s.log.Warn(bearer.UnencryptedWarning, "listen", c.Listen)
		}
	}
	if err := s.openStore(ctx); err != nil {
		return nil, err
	}
	s.out = &http.Transport{DialTLSContext: dialtls.DialContext(nil, outbound), MaxIdleConnsPerHost: forwardIdle,
		DisableCompression: true, IdleConnTimeout: time.Minute}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var backend api.Backend = &Direct{Cloud: c.Cloud, Name: c.Name, Cluster: c.Cluster, Version: version, Store: s.store}
	if !c.Direct {
		if err := s.openNode(ctx, version, tokens); err != nil {
			return nil, err
		}
		backend = s.node
		registry.MustRegister(newCollector(s.node))
	}
	if s.listen, err = net.Listen("tcp", c.Listen); err != nil {
		return nil, fmt.Errorf("listening for clients: %w", err)
	}
	s.server = api.New(api.Config{
		Backend: backend, Member: c.Name, Guard: webguard.New(s.listen.Addr(),
			s.hosts()...), Tokens: tokens, InFlight: c.InFlight, Timeout: c.Timeout.Duration(),
		Registry: registry, Forward: s.out, ForwardTLS: outbound != nil, Log: s.log,
	})
	s.http = s.server.HTTP(inbound)
	go s.serve(s.http, s.listen, inbound != nil)
	s.log.Info("serving", "listen", s.listen.Addr().String(), "peer", c.Peer, "cloud", c.Cloud, "direct", c.Direct, "witness", c.Witness)
	return s, nil
}

func (s *Service) hosts() []string {
	all := append([]string{s.config.Listen, s.config.Advertise}, s.config.Hosts...)
	if s.id != nil {
		all = append(all, s.id.Hosts()...)
	}
	return all
}

func (s *Service) serve(h *http.Server, l net.Listener, secure bool) {
	var err error
	if secure {
		err = h.ServeTLS(l, "", "")
	} else {
		err = h.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	s.served <- err
}

func (s *Service) loadIdentity() error {
	c := s.config
	if c.Certificate == "" {
		return nil
	}
	id, err := ca.Load(c.Certificate, c.Key, c.Authority, time.Now())
	if err != nil {
		return err
	}
	if id.Cluster != c.Cluster {
		return fmt.Errorf("%w: the certificate is for the cluster %q", ErrConfig, id.Cluster)
	}
	s.id = &id
	return nil
}

func (s *Service) openStore(ctx context.Context) (err error) {
	c := s.config
	if c.Witness {
		return nil
	}
	s.store, err = cloudsql.New(cloudsql.Config{URL: c.Database, Cluster: c.Cluster, Durable: c.Direct, Timeout: c.DatabaseTimeout.Duration()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	err = s.store.Prepare(ctx)
	if err == nil || c.Direct || !s.store.IsServer() || errors.Is(err, cloudsql.ErrCluster) || errors.Is(err, cloudsql.ErrNewer) {
		return err
	}
	// The cluster may need this member's vote while its database is unreachable.
	s.log.Error("database unreachable: starting without it", "error", err)
	return nil
}

func (s *Service) openNode(ctx context.Context, version string, tokens *bearer.Tokens) error {
	c := s.config
	o := Options{
		Cluster: c.Cluster, Name: c.Name, Cloud: c.Cloud, API: c.Advertise, Transport: s.out, Secure: s.id != nil, Dir: c.Data,
		Token: tokens.TokenFor(bearer.Read), Version: version, Log: s.log,
	}
	if s.id != nil {
		o.Expires, o.Authorities = s.id.Expires, s.id.Authorities
	}
	s.node = NewNode(o, s.store)
	cfg := c.consensusConfig()
	cfg.Log = s.log
	if s.id != nil {
		cfg.TLS, cfg.DialTLS = s.id.Server(nil, ca.Member), s.id.Client(nil, ca.Member)
	}
	if s.store != nil {
		cfg.Snapshotter = s.node
	}
	raft, err := consensus.Open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	s.raft = raft
	return s.node.Start(ctx, raft)
}

func (c *Config) consensusConfig() consensus.Config {
	cfg := consensus.Config{
		Self:    consensus.Member{ID: c.ID, Name: c.Name, Addr: c.Peer, Site: c.Cloud, API: c.Advertise, Role: consensusRole(c.Witness)},
		Cluster: c.Cluster, Join: c.Join, Dir: c.logDir(), Election: c.Election.Duration(), PreferSite: c.PreferCloud,
		FollowProposals: c.FollowWrites, MaxLog: int64(c.MaxLog), MaxAge: c.MaxAge.Duration(),
	}
	for _, m := range c.Members {
		cfg.Members = append(cfg.Members, consensus.Member{
			ID: m.ID, Name: m.Name, Addr: m.Peer, Site: m.Cloud, API: m.API, Role: consensusRole(m.Witness),
		})
	}
	return cfg
}

func consensusRole(witness bool) consensus.Role {
	if witness {
		return consensus.Witness
	}
	return consensus.Voter
}

// Addr returns the interface's listen address.
func (s *Service) Addr() string { return s.listen.Addr().String() }

// Run serves until ctx ends or the member fails, and drains: /readyz fails, leadership moves, requests finish.
func (s *Service) Run(ctx context.Context) error {
	var failed error
	var ended <-chan struct{}
	if s.raft != nil {
		ended = s.raft.Done()
	}
	select {
	case <-ctx.Done():
	case failed = <-s.served:
		s.served <- nil
	case <-ended:
		failed = s.raft.Err()
	}
	ctx = context.WithoutCancel(ctx)
	s.server.Drain()
	if s.raft != nil && failed == nil {
		s.transferLeadership(ctx)
		select { // balancers see the failing /readyz
		case <-time.After(s.config.Drain.Duration()):
		case <-ended:
		}
	}
	s.log.Info("ending")
	return errors.Join(failed, s.Close(ctx))
}

func (s *Service) transferLeadership(ctx context.Context) {
	status := s.raft.Status()
	if status.Leader != status.Self.ID {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	for _, m := range status.Members {
		if m.ID == status.Self.ID || !m.Votes || !m.Connected || m.Role == consensus.Witness {
			continue
		}
		if err := s.raft.Transfer(ctx, m.ID); err == nil {
			return
		}
	}
}

func (s *Service) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	var errs []error
	if s.node != nil {
		s.node.Release()
	}
	if s.http != nil {
		if err := s.http.Shutdown(ctx); err != nil {
			errs = append(errs, s.http.Close())
		}
		errs = append(errs, <-s.served)
		s.server.Close(ctx)
		s.http = nil
	}
	if s.node != nil {
		s.node.Stop()
		s.node = nil
	}
	if s.raft != nil {
		errs = append(errs, s.raft.Close())
		s.raft = nil
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
		s.store = nil
	}
	if s.out != nil {
		s.out.CloseIdleConnections()
	}
	s.cancel()
	s.background.Wait()
	return errors.Join(errs...)
}
