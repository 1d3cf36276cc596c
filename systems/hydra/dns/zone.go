// Package dns is an authoritative DNS server for services in several clouds. Answers hold the addresses of the healthy
// targets in rotating order, with a TTL short enough to forget a lost cloud soon.
//
//	query ─► Server ─► zone.answer ─► records of healthy targets
//	                      │                 ▲
//	                      └─ alias ─► name of the zone
//	           checks of every target ──────┘
//
// Aliases are flattened (ANAME): the answer holds the other name's current addresses. So the
// apex, which cannot have a CNAME, can follow another name.
package dns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

type zone struct {
	config Config
	apex   string
	names  map[string]*name
	// emptyNames have no records, but have names below them.
	emptyNames map[string]bool
	servers    []string // names of the name servers
	baseSerial uint32   // serial number before the first health change
}

type name struct {
	targets  []*target
	alias    string
	rotation atomic.Uint32
}

func newZone(c Config) *zone {
	z := &zone{config: c, apex: c.apex(), names: map[string]*name{}, emptyNames: map[string]bool{}}
	for _, ns := range c.Nameservers {
		host := c.absolute(ns.Name)
		z.servers = append(z.servers, host)
		n := &name{}
		for _, a := range ns.Addresses {
			n.targets = append(n.targets, newTarget(Target{Address: a}, c.Check))
		}
		z.names[host] = n
	}
	for _, given := range c.Names {
		n := &name{}
		if given.Alias != "" {
			n.alias = c.absolute(given.Alias)
		}
		for _, t := range given.Targets {
			n.targets = append(n.targets, newTarget(t, c.Check))
		}
		z.names[c.absolute(given.Name)] = n
	}
	for full := range z.names {
		for off, end := dns.NextLabel(full, 0); !end && dns.IsSubDomain(z.apex, full[off:]); off, end = dns.NextLabel(full, off) {
			z.emptyNames[full[off:]] = true
		}
	}
	if len(z.servers) == 0 {
		z.servers = []string{"ns." + z.apex}
	}
	return z
}

func (z *zone) answer(m *dns.Msg, q dns.Question) {
	m.Authoritative = true
	full := dns.CanonicalName(q.Name)
	n, ok := z.names[full]
	switch apex := full == z.apex; {
	case !ok && !apex && !z.emptyNames[full]:
		m.Rcode = dns.RcodeNameError
	case apex && q.Qtype == dns.TypeSOA:
		m.Answer = []dns.RR{z.soa(q.Name)}
	case apex && q.Qtype == dns.TypeNS:
		for _, host := range z.servers {
			m.Answer = append(m.Answer, &dns.NS{Hdr: z.header(q.Name, dns.TypeNS, z.ttl()), Ns: host})
			m.Extra = append(m.Extra, z.glue(host)...)
		}
	case q.Qtype == dns.TypeANY:
		// RFC 8482: a minimal answer.
		m.Answer = []dns.RR{&dns.HINFO{Hdr: z.header(q.Name, dns.TypeHINFO, z.ttl()), Cpu: "RFC8482"}}
	case ok && (q.Qtype == dns.TypeA || q.Qtype == dns.TypeAAAA):
		z.addresses(m, q, n)
	}
	if len(m.Answer) == 0 && m.Rcode != dns.RcodeServerFailure {
		m.Ns = []dns.RR{z.soa(z.apex)} // RFC 2308: negative TTL
	}
}

func (z *zone) addresses(m *dns.Msg, q dns.Question, n *name) {
	for n.alias != "" {
		n = z.names[n.alias] // exists in a valid zone
	}
	all, healthy := []netip.Addr{}, []netip.Addr{}
	lost := true
	for _, t := range n.targets {
		ok := t.healthy()
		lost = lost && !ok
		if t.addr.Is4() != (q.Qtype == dns.TypeA) {
			continue
		}
		all = append(all, t.addr)
		if ok {
			healthy = append(healthy, t.addr)
		}
	}
	if lost {
		if z.config.AllUnhealthy != "all" {
			m.Rcode = dns.RcodeServerFailure
			return
		}
		healthy = all
	}
	z.addAddresses(m, q, n, healthy)
}

func (z *zone) addAddresses(m *dns.Msg, q dns.Question, n *name, addrs []netip.Addr) {
	if len(addrs) == 0 {
		return
	}
	addrs = slices.Clone(addrs)
	if z.config.Order == "random" {
		rand.Shuffle(len(addrs), func(i, k int) { addrs[i], addrs[k] = addrs[k], addrs[i] })
	} else {
		first := int(n.rotation.Add(1)-1) % len(addrs)
		addrs = append(addrs[first:], addrs[:first]...)
	}
	for _, a := range addrs {
		m.Answer = append(m.Answer, z.record(q.Name, a))
	}
}

func (z *zone) record(owner string, a netip.Addr) dns.RR {
	if a.Is4() {
		return &dns.A{Hdr: z.header(owner, dns.TypeA, z.ttl()), A: a.AsSlice()}
	}
	return &dns.AAAA{Hdr: z.header(owner, dns.TypeAAAA, z.ttl()), AAAA: a.AsSlice()}
}

func (z *zone) glue(host string) (rrs []dns.RR) {
	if n, ok := z.names[host]; ok {
		for _, t := range n.targets {
			rrs = append(rrs, z.record(host, t.addr))
		}
	}
	return rrs
}

func (z *zone) header(owner string, rrtype uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}

func (z *zone) ttl() uint32 { return seconds(time.Duration(z.config.TTL)) }

func seconds(d time.Duration) uint32 { return uint32(d / time.Second) }

func (z *zone) serial() uint32 {
	serial := z.baseSerial
	for _, n := range z.names {
		for _, t := range n.targets {
			serial += t.flips.Load()
		}
	}
	return serial
}

func (z *zone) soa(owner string) *dns.SOA {
	negative := seconds(time.Duration(z.config.NegativeTTL))
	return &dns.SOA{
		Hdr: z.header(owner, dns.TypeSOA, negative), Ns: z.servers[0], Mbox: "hostmaster." + z.apex,
		Serial: z.serial(), Refresh: 60, Retry: 10, Expire: 3600, Minttl: negative,
	}
}

type target struct {
	Target
	addr  netip.Addr
	check HealthCheck
	// flips counts health changes; odd means lost. The serial number includes it, so that it grows with every change.
	flips atomic.Uint32
	// streak counts consecutive checks that contradict the health. Owned by watch.
	streak int
}

func newTarget(t Target, c HealthCheck) *target {
	return &target{Target: t, addr: netip.MustParseAddr(t.Address).Unmap(), check: c}
}

func (t *target) healthy() bool { return t.flips.Load()%2 == 0 }

// watch checks until ctx ends, calls first after the first check, which counts at once, and changed at health changes.
func (t *target) watch(ctx context.Context, client *http.Client, first func(), changed func(t *target, why error)) {
	defer first()
	if t.Check == "" {
		return
	}
	tick := time.NewTicker(time.Duration(t.check.Interval))
	defer tick.Stop()
	err := t.checkOnce(ctx, client)
	if err != nil && ctx.Err() == nil {
		t.flips.Add(1)
		changed(t, err)
	}
	first()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err = t.checkOnce(ctx, client); ctx.Err() == nil && t.recordCheck(err == nil) {
			changed(t, err)
		}
	}
}

func (t *target) recordCheck(ok bool) bool {
	if ok == t.healthy() {
		t.streak = 0
		return false
	}
	t.streak++
	if ok && t.streak < t.check.Rise || !ok && t.streak < t.check.Fall {
		return false
	}
	t.streak = 0
	t.flips.Add(1)
	return true
}

var errUnhealthy = errors.New("unhealthy")

func (t *target) checkOnce(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.check.Timeout))
	defer cancel()
	u, err := url.Parse(t.Check)
	if err != nil {
		return err
	}
	if u.Scheme == "tcp" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Check, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("%w: %s answered %s", errUnhealthy, t.Check, resp.Status)
	}
	return nil
}
