package dns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// ErrUpstream says that the resolver of names outside the zone gave no answer.
var ErrUpstream = errors.New("the upstream resolver gave no answer")

const upstreamTimeout = 2 * time.Second

// resolver asks another server for names outside the zone, and keeps its answers as long
// as they may be kept.
type resolver struct {
	server string
	now    func() time.Time

	mu   sync.Mutex
	kept map[dns.Question]kept
}

type kept struct {
	addrs []netip.Addr
	until time.Time
}

// resolve returns the addresses of a name, and for how many more seconds they are good.
func (r *resolver) resolve(name string, qtype uint16) ([]netip.Addr, uint32, error) {
	q := dns.Question{Name: dns.CanonicalName(name), Qtype: qtype, Qclass: dns.ClassINET}
	now := r.now()
	r.mu.Lock()
	k, ok := r.kept[q]
	r.mu.Unlock()
	if ok && k.until.After(now) {
		return k.addrs, seconds(k.until.Sub(now)), nil
	}
	addrs, ttl, err := r.ask(q)
	if err != nil {
		return nil, 0, fmt.Errorf("%w for %s: %w", ErrUpstream, name, err)
	}
	r.mu.Lock()
	r.kept[q] = kept{addrs, now.Add(time.Duration(ttl) * time.Second)}
	r.mu.Unlock()
	return addrs, ttl, nil
}

func (r *resolver) ask(q dns.Question) (addrs []netip.Addr, ttl uint32, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), upstreamTimeout)
	defer cancel()
	m := new(dns.Msg).SetQuestion(q.Name, q.Qtype)
	m.SetEdns0(udpSize, false)
	resp, _, err := new(dns.Client).ExchangeContext(ctx, m, r.server)
	if err == nil && resp.Truncated {
		resp, _, err = (&dns.Client{Net: "tcp"}).ExchangeContext(ctx, m, r.server)
	}
	if err != nil {
		return nil, 0, err
	}
	if resp.Rcode != dns.RcodeSuccess {
		return nil, 0, errors.New(dns.RcodeToString[resp.Rcode])
	}
	ttl = 1 // of an answer without addresses
	for i, rr := range resp.Answer {
		if i == 0 || rr.Header().Ttl < ttl {
			ttl = rr.Header().Ttl
		}
		var ip []byte
		switch rr := rr.(type) {
		case *dns.A:
			ip = rr.A.To4()
		case *dns.AAAA:
			ip = rr.AAAA.To16()
		}
		if a, ok := netip.AddrFromSlice(ip); ok && rr.Header().Rrtype == q.Qtype {
			addrs = append(addrs, a)
		}
	}
	return addrs, ttl, nil
}
