package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/miekg/dns"

	"skerry/internal/base/dialtls"
	"skerry/systems/hydra/hydraclient"
)

const (
	askTimeout = time.Second
	// nameTimeout bounds a question of a DNS server where the asker's own deadline is later. The library's
	// 2 s would give up questions that a starved machine answers within the asker's time.
	nameTimeout = 10 * time.Second
)

// CheckReady asks a service whether it is ready; reach is how members are talked to.
func (s Service) CheckReady(ctx context.Context, reach hydraclient.Config) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if s.Kind == DNSServer {
		at, err := url.Parse(s.Ready)
		if err != nil {
			return fmt.Errorf("where to ask the DNS server: %w", err)
		}
		_, err = Lookup(ctx, s.Host.Dial, at.Host, at.Path[1:])
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Ready, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialTLSContext: dialtls.DialContext(s.Host.Dial, reach.TLS), DialContext: s.Host.Dial}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s answered %s", s.Ready, resp.Status)
	}
	return err
}

var errNoAddress = errors.New("no address is known")

// Lookup asks a DNS server, over a connection that dial makes, for the addresses of a name, in its order. It waits
// until ctx's deadline, ten seconds at most.
func Lookup(ctx context.Context, dial func(ctx context.Context, network, addr string) (net.Conn, error), server,
	name string) ([]netip.Addr, error) {
	conn, err := dial(ctx, "tcp", server)
	if err != nil {
		return nil, fmt.Errorf("asking the DNS server: %w", err)
	}
	defer conn.Close()
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA)
	answer, _, err := (&dns.Client{Timeout: nameTimeout}).ExchangeWithConnContext(ctx, question, &dns.Conn{Conn: conn})
	if err != nil {
		return nil, fmt.Errorf("asking the DNS server at %s for %s: %w", server, name, err)
	}
	var all []netip.Addr
	for _, r := range answer.Answer {
		if a, ok := r.(*dns.A); ok {
			if addr, ok := netip.AddrFromSlice(a.A.To4()); ok {
				all = append(all, addr)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("asking the DNS server at %s for %s: %w (%s)", server, name, errNoAddress, dns.RcodeToString[answer.Rcode])
	}
	return all, nil
}
