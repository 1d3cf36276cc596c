package deploy

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// A starved DNS server's answer is waited for as long as the asker has time.
func TestLookupOfASlowServer(t *testing.T) {
	for name, tt := range map[string]struct {
		has, takes time.Duration
		ok         bool
	}{
		"in time":             {8 * time.Second, 5 * time.Second, true},
		"too late":            {4 * time.Second, 5 * time.Second, false},
		"ten seconds at most": {time.Hour, 20 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.has)
				defer cancel()
				asker, server := net.Pipe()
				defer server.Close()
				var serving sync.WaitGroup
				defer serving.Wait()
				serving.Go(func() {
					s := &dns.Conn{Conn: server}
					q, err := s.ReadMsg()
					if err != nil {
						return // the asker is gone
					}
					time.Sleep(tt.takes)
					a := new(dns.Msg).SetReply(q)
					a.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(10, 0, 0, 7)}}
					_ = s.WriteMsg(a)
				})
				dial := func(context.Context, string, string) (net.Conn, error) { return asker, nil }
				all, err := Lookup(ctx, dial, "10.0.0.1:53", "wallet.test")
				if tt.ok && (err != nil || len(all) != 1 || all[0] != netip.MustParseAddr("10.0.0.7")) || !tt.ok && err == nil {
					t.Errorf("Lookup() = %v, %v", all, err)
				}
			})
		})
	}
}
