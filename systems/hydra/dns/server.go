package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
)

// udpSize bounds answers over UDP to what passes through networks unfragmented (DNS flag day 2020).
const udpSize = 1232

type Options struct {
	// Listen is the UDP and TCP address; port 0 picks a port that is free for both.
	Listen string
	Client *http.Client
	Log    *slog.Logger
	// Registry, if set, gets the server's metrics.
	Registry prometheus.Registerer
}

type Server struct {
	zone    *zone
	options Options
	udp     net.PacketConn
	tcp     net.Listener
	queries *prometheus.CounterVec
	healthy *prometheus.GaugeVec
}

// New returns a server that listens, and answers once Run is called.
func New(c Config, o Options) (*Server, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Server{zone: newZone(c), options: o}
	s.zone.baseSerial = uint32(time.Now().Unix())
	if s.options.Client == nil {
		// Each check opens a connection, as a new client would.
		s.options.Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	if s.options.Log == nil {
		s.options.Log = slog.New(slog.DiscardHandler)
	}
	if err := s.registerMetrics(); err != nil {
		return nil, err
	}
	var err error
	s.udp, s.tcp, err = listen(o.Listen)
	return s, err
}

func listen(addr string) (net.PacketConn, net.Listener, error) {
	var failed error
	for range 10 { // with port 0 the TCP port may be in use
		udp, err := net.ListenPacket("udp", addr)
		if err != nil {
			failed = fmt.Errorf("listening for DNS: %w", err)
			break
		}
		tcp, err := net.Listen("tcp", udp.LocalAddr().String())
		if err == nil {
			return udp, tcp, nil
		}
		failed = fmt.Errorf("listening for DNS: %w", errors.Join(err, udp.Close()))
		if _, port, err := net.SplitHostPort(addr); err != nil || port != "0" {
			break
		}
	}
	return nil, nil, advice.With(failed, "choose another --listen; a port below 1024 needs root")
}

func (s *Server) Addr() string { return s.udp.LocalAddr().String() }

// Run answers until ctx ends. It first checks every target once, so that no answer names a lost one.
func (s *Server) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var checked sync.WaitGroup
	for _, n := range s.zone.names {
		for _, t := range n.targets {
			checked.Add(1)
			g.Go(func() error {
				t.watch(ctx, s.options.Client, sync.OnceFunc(checked.Done), s.logChange)
				return nil
			})
		}
	}
	checked.Wait()
	for _, server := range []*dns.Server{{PacketConn: s.udp, Handler: s}, {Listener: s.tcp, Handler: s}} {
		server.NotifyStartedFunc = func() {
			context.AfterFunc(ctx, func() { _ = server.Shutdown() }) // fails only before the start
		}
		g.Go(server.ActivateAndServe)
	}
	return g.Wait()
}

func (s *Server) logChange(t *target, why error) {
	gauge := s.healthy.WithLabelValues(t.Address, t.Check)
	if why != nil {
		gauge.Set(0)
		s.options.Log.Warn("a target is lost", "address", t.Address, "check", t.Check, "error", why)
		return
	}
	gauge.Set(1)
	s.options.Log.Info("a target is back", "address", t.Address, "check", t.Check)
}

func (s *Server) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	m := s.reply(r)
	size := dns.MinMsgSize
	if _, overTCP := w.RemoteAddr().(*net.TCPAddr); overTCP {
		size = dns.MaxMsgSize
	} else if opt := r.IsEdns0(); opt != nil {
		size = min(max(int(opt.UDPSize()), dns.MinMsgSize), udpSize)
	}
	m.Truncate(size)
	qtype := "none"
	if len(r.Question) == 1 {
		qtype = metricType(r.Question[0].Qtype)
	}
	s.queries.WithLabelValues(qtype, dns.RcodeToString[m.Rcode]).Inc()
	if err := w.WriteMsg(m); err != nil {
		s.options.Log.Debug("answering a query", "to", w.RemoteAddr(), "error", err)
	}
}

func (s *Server) reply(r *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(r)
	opt := r.IsEdns0()
	if opt != nil {
		m.SetEdns0(udpSize, false)
	}
	switch {
	case opt != nil && opt.Version() != 0:
		m.Rcode = dns.RcodeBadVers
	case r.Opcode != dns.OpcodeQuery:
		m.Rcode = dns.RcodeNotImplemented
	case len(r.Question) != 1:
		m.Rcode = dns.RcodeFormatError
	default:
		q := r.Question[0]
		switch {
		case q.Qclass != dns.ClassINET, !dns.IsSubDomain(s.zone.apex,
			dns.CanonicalName(q.Name)), q.Qtype == dns.TypeAXFR, q.Qtype == dns.TypeIXFR:
			m.Rcode = dns.RcodeRefused
		default:
			s.zone.answer(m, q)
		}
	}
	return m
}

func metricType(qtype uint16) string {
	switch qtype {
	case dns.TypeA, dns.TypeAAAA, dns.TypeSOA, dns.TypeNS, dns.TypeANY:
		return dns.TypeToString[qtype]
	}
	return "other"
}

func (s *Server) registerMetrics() error {
	s.queries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hydra_dns_queries_total", Help: "Queries answered, by type and response code.",
	}, []string{"type", "rcode"})
	s.healthy = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hydra_dns_target_healthy", Help: "1 if a target is healthy.",
	}, []string{"address", "check"})
	if s.options.Registry == nil {
		return nil
	}
	for _, n := range s.zone.names {
		for _, t := range n.targets {
			s.healthy.WithLabelValues(t.Address, t.Check).Set(1)
		}
	}
	if err := errors.Join(s.options.Registry.Register(s.queries), s.options.Registry.Register(s.healthy)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}
