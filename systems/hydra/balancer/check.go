package balancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"skerry/systems/hydra/api"
)

var errUnhealthy = errors.New("unhealthy")

// maxStatus bounds what is read of a check's answer, in bytes.
const maxStatus = 1 << 20

func dialer(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return (&net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}).DialContext
}

// watch checks a backend until ctx ends; first is called after the first check.
func (p *pool) watch(ctx context.Context, b *backend, first func()) {
	defer first()
	tick := time.NewTicker(p.config.Interval)
	defer tick.Stop()
	for {
		began := time.Now()
		v, err := p.ask(ctx, b)
		if ctx.Err() != nil {
			return
		}
		if b.heard(v, time.Since(began), err, p.config.Fall, p.config.Rise) {
			if err != nil {
				p.config.Log.Warn("a backend is down", "backend", b.url.Host, "cloud", b.cloud, "error", err)
			} else {
				p.config.Log.Info("a backend is up", "backend", b.url.Host, "cloud", b.cloud)
			}
		}
		first()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ask checks a backend once.
func (p *pool) ask(ctx context.Context, b *backend) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.CheckTimeout)
	defer cancel()
	path := "/status"
	if p.kind == Apps {
		path = "/healthz"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url.JoinPath(path).String(), nil)
	if err != nil {
		return view{}, err
	}
	if p.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+p.config.Token)
	}
	resp, err := p.client.RoundTrip(req)
	if err != nil {
		return view{}, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return view{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return view{}, fmt.Errorf("%w: %s%s answered %s", errUnhealthy, b.url.Host, path, resp.Status)
	}
	if p.kind == Apps {
		return view{}, nil
	}
	var s api.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return view{}, fmt.Errorf("reading the status of %s: %w", b.url.Host, err)
	}
	if s.Problem != "" {
		return view{}, fmt.Errorf("%w: %s", errUnhealthy, s.Problem)
	}
	return view{
		draining: s.Draining, spare: s.Witness, term: s.Term,
		leads: s.Role == roleLeader || s.Role == roleDirect,
		knows: s.Leader != "" || s.Role == roleDirect,
	}, nil
}

// Roles of members in their status.
const (
	roleLeader = "leader"
	roleDirect = "direct"
)
