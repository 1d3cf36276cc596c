package hydrabench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/miekg/dns"

	"skerry/internal/system/hydra/api"
	"skerry/internal/system/hydra/deploy"
	"skerry/internal/system/hydra/hydraclient"
)

// namedTry bounds one try at one address, as a client bounds it that has another one.
const namedTry = time.Second

// named is a client that finds a load balancer by its name and keeps the answer as long as
// it may.
type named struct {
	job
	http *http.Client

	mu    sync.Mutex
	addrs []string
	until time.Time
}

// openNamed is through DNS and load balancers, with plain HTTP.
func openNamed(_ context.Context, j job) (operations, error) {
	n := &named{job: j, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: j.Workers}}}
	return operations{write: n.write, read: nil, close: func() error { n.http.CloseIdleConnections(); return nil }}, nil
}

// lookup returns the addresses of the name.
func (n *named) lookup(ctx context.Context) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().Before(n.until) {
		return n.addrs, nil
	}
	m := new(dns.Msg).SetQuestion(dns.Fqdn(n.Zone), dns.TypeA)
	reply, _, err := (&dns.Client{Timeout: namedTry}).ExchangeContext(ctx, m, n.DNS)
	if err != nil {
		return nil, fmt.Errorf("looking %s up: %w", n.Zone, err)
	}
	n.addrs = nil
	for _, rr := range reply.Answer {
		if a, ok := rr.(*dns.A); ok {
			n.addrs = append(n.addrs, a.A.String())
			n.until = time.Now().Add(time.Duration(a.Hdr.Ttl) * time.Second)
		}
	}
	if len(n.addrs) == 0 {
		return nil, fmt.Errorf("looking %s up: no address", n.Zone)
	}
	return n.addrs, nil
}

// write puts a row, at the name's addresses in turn, until one answers well or ctx ends.
func (n *named) write(ctx context.Context, key string, value []byte) error {
	id := hydraclient.NewRequestID()
	var last error
	for ctx.Err() == nil {
		addrs, err := n.lookup(ctx)
		if err != nil {
			last = err
			continue
		}
		for _, a := range addrs {
			if last = n.put(ctx, a, key, id, value); last == nil {
				return nil
			}
		}
	}
	return last
}

func (n *named) put(ctx context.Context, addr, key, id string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, namedTry)
	defer cancel()
	url := "http://" + net.JoinHostPort(addr, strconv.Itoa(deploy.PortLB)) + "/v1/tables/" + benchTable + "/rows/" + key
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(value))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(api.HeaderRequestID, id)
	resp, err := n.http.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s answered %s", addr, resp.Status)
	}
	return err
}
