package dns

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"skerry/internal/base/unit"
	"skerry/test/testkit"
)

// service is the target of a health check.
type service struct {
	*httptest.Server
	ill atomic.Bool
}

func newService(t *testing.T) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s.ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// serve runs a server for a zone and returns it with its address.
func serve(t *testing.T, c Config) (*Server, string) {
	t.Helper()
	c.Check.Interval, c.Check.Timeout = unit.Duration(10*time.Millisecond), unit.Duration(20*time.Second)
	s, err := New(c, Options{Listen: "127.0.0.1:0", Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, s.Addr()
}

// queryServer sends a query over "udp" or "tcp".
func queryServer(t *testing.T, at, network, name string, qtype uint16) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	c := &dns.Client{Net: network, Timeout: 30 * time.Second}
	reply, _, err := c.ExchangeContext(t.Context(), m, at)
	if err != nil {
		t.Fatalf("%s %s: %v", name, dns.TypeToString[qtype], err)
	}
	return reply
}

func addresses(m *dns.Msg) (all []string) {
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			all = append(all, rr.A.String())
		case *dns.AAAA:
			all = append(all, rr.AAAA.String())
		}
	}
	return all
}

// counted returns the number of A queries answered without error.
func counted(t *testing.T, s *Server) float64 {
	t.Helper()
	var m dto.Metric
	if err := s.queries.WithLabelValues("A", "NOERROR").Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting until %s", what)
		}
	}
}

// example returns a configuration that uses every feature of a zone.
func example() Config {
	c := Defaults("Hydra.test")
	c.Nameservers = []Nameserver{{Name: "ns1", Addresses: []string{"192.0.2.53"}}}
	c.Names = []Name{
		{Name: "@", Alias: "wallet"},
		{Name: "wallet", Targets: []Target{{Address: "192.0.2.1"}, {Address: "192.0.2.2"}, {Address: "2001:db8::1"}}},
		{Name: "a.deep", Targets: []Target{{Address: "192.0.2.9"}}},
		{Name: "four", Targets: []Target{{Address: "192.0.2.4"}}},
	}
	return c
}

func TestAnswers(t *testing.T) {
	_, at := serve(t, example())
	tests := []struct {
		name  string
		qtype uint16
		rcode int
		addrs []string
		types []string // types in the answer section, then in the authority section
	}{
		{"wallet.hydra.test.", dns.TypeA, dns.RcodeSuccess, []string{"192.0.2.1", "192.0.2.2"}, []string{"A", "A"}},
		{"WALLET.hydra.TEST.", dns.TypeAAAA, dns.RcodeSuccess, []string{"2001:db8::1"}, []string{"AAAA"}},
		{"hydra.test.", dns.TypeA, dns.RcodeSuccess, []string{"192.0.2.1", "192.0.2.2"}, []string{"A", "A"}},
		{"hydra.test.", dns.TypeSOA, dns.RcodeSuccess, nil, []string{"SOA"}},
		{"hydra.test.", dns.TypeNS, dns.RcodeSuccess, nil, []string{"NS"}},
		{"ns1.hydra.test.", dns.TypeA, dns.RcodeSuccess, []string{"192.0.2.53"}, []string{"A"}},
		{"hydra.test.", dns.TypeMX, dns.RcodeSuccess, nil, []string{"SOA"}},
		{"four.hydra.test.", dns.TypeAAAA, dns.RcodeSuccess, nil, []string{"SOA"}},
		{"deep.hydra.test.", dns.TypeA, dns.RcodeSuccess, nil, []string{"SOA"}}, // an empty non-terminal
		{"none.hydra.test.", dns.TypeA, dns.RcodeNameError, nil, []string{"SOA"}},
		{"x.wallet.hydra.test.", dns.TypeA, dns.RcodeNameError, nil, []string{"SOA"}},
		{"wallet.hydra.test.", dns.TypeANY, dns.RcodeSuccess, nil, []string{"HINFO"}},
		{"hydra.test.", dns.TypeAXFR, dns.RcodeRefused, nil, nil},
		{"example.org.", dns.TypeA, dns.RcodeRefused, nil, nil},
		{"nothydra.test.", dns.TypeA, dns.RcodeRefused, nil, nil},
	}
	for _, tt := range tests {
		for _, network := range []string{"udp", "tcp"} {
			m := queryServer(t, at, network, tt.name, tt.qtype)
			var types []string
			for _, rr := range append(slices.Clone(m.Answer), m.Ns...) {
				types = append(types, dns.TypeToString[rr.Header().Rrtype])
			}
			if m.Rcode != tt.rcode || !slices.Equal(sorted(addresses(m)), tt.addrs) || !slices.Equal(types, tt.types) {
				t.Errorf("%s %s over %s: %s", tt.name, dns.TypeToString[tt.qtype], network, m)
			}
			if m.Authoritative != (tt.rcode != dns.RcodeRefused) {
				t.Errorf("%s: authoritative: %v", tt.name, m.Authoritative)
			}
			for _, rr := range m.Answer {
				if rr.Header().Name != tt.name {
					t.Errorf("query for %s: got a record of %s", tt.name, rr.Header().Name)
				}
			}
		}
	}
}

func TestInvalidQueries(t *testing.T) {
	_, at := serve(t, example())
	tests := map[string]struct {
		change func(*dns.Msg)
		rcode  int
	}{
		"an update":                {func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }, dns.RcodeNotImplemented},
		"class CHAOS":              {func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused},
		"unsupported EDNS version": {func(m *dns.Msg) { m.SetEdns0(4096, false); m.IsEdns0().SetVersion(1) }, dns.RcodeBadVers},
	}
	for name, tt := range tests {
		m := new(dns.Msg).SetQuestion("wallet.hydra.test.", dns.TypeA)
		tt.change(m)
		reply, _, err := (&dns.Client{Timeout: 30 * time.Second}).ExchangeContext(t.Context(), m, at)
		if err != nil || reply.Rcode != tt.rcode {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
}

func TestAddressesRotate(t *testing.T) {
	for _, order := range []string{"rotate", "random"} {
		c := example()
		c.Order = order
		_, at := serve(t, c)
		first := map[string]int{}
		const n = 40
		for range n {
			first[addresses(queryServer(t, at, "udp", "hydra.test.", dns.TypeA))[0]]++
		}
		if len(first) != 2 {
			t.Errorf("%s: first addresses: %v", order, first)
		}
		if order == "rotate" && first["192.0.2.1"] != n/2 {
			t.Errorf("%s: first addresses: %v", order, first)
		}
	}
}

func TestHealth(t *testing.T) {
	for _, policy := range []string{"all", "servfail"} {
		one, two := newService(t), newService(t)
		two.ill.Store(true) // before the first health check
		c := example()
		c.AllUnhealthy = policy
		c.Names = []Name{{Name: "@", Alias: "w"}, {Name: "w", Targets: []Target{{Address: "192.0.2.1", Check: one.URL},
			{Address: "192.0.2.2", Check: two.URL}}}}
		s, at := serve(t, c)
		serial := func() uint32 {
			return queryServer(t, at, "udp", "hydra.test.", dns.TypeSOA).Answer[0].(*dns.SOA).Serial
		}
		now := func() []string { return sorted(addresses(queryServer(t, at, "udp", "hydra.test.", dns.TypeA))) }
		if got := now(); !slices.Equal(got, []string{"192.0.2.1"}) {
			t.Errorf("with one unhealthy target at the start: %v", got)
		}
		before := serial()
		two.ill.Store(false)
		until(t, "the second target is back", func() bool { return len(now()) == 2 })
		if serial() <= before {
			t.Error("the serial number did not change with the zone")
		}
		one.Close()
		until(t, "the first target is removed", func() bool { return slices.Equal(now(), []string{"192.0.2.2"}) })
		two.ill.Store(true)
		if policy == "all" {
			until(t, "all targets are returned since none is healthy", func() bool { return len(now()) == 2 })
		} else {
			until(t, "the query fails since no target is healthy", func() bool {
				return queryServer(t, at, "udp", "hydra.test.", dns.TypeA).Rcode == dns.RcodeServerFailure
			})
		}
		if got := counted(t, s); got == 0 {
			t.Error("no queries were counted")
		}
	}
}

func TestTCPCheck(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := example()
	c.Names = []Name{{Name: "@", Targets: []Target{{Address: "192.0.2.1", Check: "tcp://" + l.Addr().String()}, {Address: "192.0.2.2"}}}}
	_, at := serve(t, c)
	if got := addresses(queryServer(t, at, "udp", "hydra.test.", dns.TypeA)); len(got) != 2 {
		t.Errorf("with two healthy targets: %v", got)
	}
	l.Close()
	until(t, "the first target is removed", func() bool { return len(addresses(queryServer(t, at, "udp", "hydra.test.", dns.TypeA))) == 1 })
}

func TestLargeAnswers(t *testing.T) {
	c := Defaults("hydra.test")
	n := Name{Name: "@"}
	for i := range 100 {
		n.Targets = append(n.Targets, Target{Address: net.IPv4(192, 0, 2, byte(i)).String()})
	}
	c.Names = []Name{n}
	_, at := serve(t, c)
	m := queryServer(t, at, "udp", "hydra.test.", dns.TypeA)
	m.Compress = true
	if !m.Truncated || m.Len() > dns.MinMsgSize {
		t.Errorf("truncated %v, %d bytes", m.Truncated, m.Len())
	}
	if m := queryServer(t, at, "tcp", "hydra.test.", dns.TypeA); m.Truncated || len(m.Answer) != 100 {
		t.Errorf("over TCP: truncated %v, %d addresses", m.Truncated, len(m.Answer))
	}
}

// TestCachingClients checks that a client that respects the TTL finds the remaining cloud after it. A client that
// caches answers forever does not, and has to try the addresses of its answer in turn.
func TestCachingClients(t *testing.T) {
	one, two := newService(t), newService(t)
	c := example()
	c.TTL = unit.Duration(time.Second)
	c.Names = []Name{{Name: "@", Targets: []Target{{Address: "192.0.2.1", Check: one.URL}, {Address: "192.0.2.2", Check: two.URL}}}}
	_, at := serve(t, c)
	cached := func(obey bool) func() []string {
		var kept *dns.Msg
		var when time.Time
		return func() []string {
			if kept == nil || obey && time.Since(when) > time.Duration(kept.Answer[0].Header().Ttl)*time.Second {
				kept, when = queryServer(t, at, "udp", "hydra.test.", dns.TypeA), time.Now()
			}
			return sorted(addresses(kept))
		}
	}
	obedient, stubborn := cached(true), cached(false)
	both := []string{"192.0.2.1", "192.0.2.2"}
	if !slices.Equal(obedient(), both) || !slices.Equal(stubborn(), both) {
		t.Fatal("the answer lacks a healthy cloud")
	}
	one.Close()
	until(t, "the client that respects the TTL has dropped the lost cloud", func() bool { return slices.Equal(obedient(), both[1:]) })
	if got := stubborn(); !slices.Equal(got, both) {
		t.Errorf("the client that ignores the TTL: %v", got)
	}
}

func TestDig(t *testing.T) {
	testkit.Need(t, testkit.Dig)
	_, at := serve(t, example())
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"+short"}, {"+short", "+tcp"}} {
		out, err := exec.CommandContext(t.Context(), "dig", append([]string{"@" + host, "-p", port, "hydra.test", "A"},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("dig: %v: %s", err, out)
		}
		if got := sorted(strings.Fields(string(out))); !slices.Equal(got, []string{"192.0.2.1", "192.0.2.2"}) {
			t.Errorf("dig %v: %s", args, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), "dig", "@"+host, "-p", port, "none.hydra.test", "A").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "NXDOMAIN") || !strings.Contains(string(out), "SOA") {
		t.Errorf("dig: %v: %s", err, out)
	}
}
