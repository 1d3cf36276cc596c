package balancer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"skerry/internal/base/linger"
	"skerry/systems/hydra/api"
)

const (
	// maxBuffered is the size of buffered answers. A backend that dies does not truncate them.
	maxBuffered = 1 << 20
	firstPause  = 20 * time.Millisecond
	lastPause   = 500 * time.Millisecond
)

type request struct {
	*http.Request
	body  []byte
	write bool
	// safe means that executing the request twice does no harm.
	safe bool
}

type attempt struct {
	resp *http.Response // nil when err is not
	body []byte         // of resp, or its start if rest is set
	rest io.ReadCloser
	err  error
	// undone means that the request was certainly not executed.
	undone bool
}

// send tries backends until one answers. It returns the answer, or nil, and whether a write may have been executed.
func (p *pool) send(ctx context.Context, r *request) (a *attempt, doubt bool) {
	patience := time.Now().Add(p.config.Patience)
	pause := firstPause
	var last *attempt
	for {
		for _, b := range p.order(r.write) {
			a := p.try(ctx, r, b)
			final := a.err == nil && !isRetriable(a.resp.StatusCode) && !a.undone
			if final || ctx.Err() != nil {
				return a.orNil(), doubt || r.write && !final && !a.undone
			}
			doubt = doubt || r.write && !a.undone
			if !a.undone && !r.safe {
				return a.orNil(), true
			}
			p.metrics.retries.WithLabelValues(string(p.kind)).Inc()
			if last != nil {
				last.close()
			}
			last = a
		}
		if time.Now().Add(pause).After(patience) {
			return last.orNil(), doubt
		}
		if linger.For(ctx, pause) != nil {
			return last.orNil(), doubt
		}
		pause = min(2*pause, lastPause)
	}
}

func (a *attempt) orNil() *attempt {
	if a == nil || a.err != nil {
		return nil
	}
	return a
}

func (a *attempt) close() {
	if a.rest != nil {
		_ = a.rest.Close() // the answer is discarded
	}
}

func isRetriable(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

func (p *pool) try(ctx context.Context, r *request, b *backend) *attempt {
	b.inflight.Add(1)
	defer b.inflight.Add(-1)
	cancel := context.CancelFunc(func() {})
	if r.safe {
		ctx, cancel = context.WithTimeout(ctx, p.config.Try)
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	resp, err := p.client.RoundTrip(r.outgoing(ctx, b, p.config.Name))
	if err != nil {
		cancel()
		if !sent.Load() && isDialError(err) {
			b.markRefused(err)
		}
		return &attempt{err: err, undone: !sent.Load()}
	}
	a := &attempt{resp: resp}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBuffered))
	if err != nil {
		cancel()
		return &attempt{err: errors.Join(err, resp.Body.Close())}
	}
	if len(a.body) == maxBuffered {
		a.rest = &cancelled{resp.Body, cancel}
		return a
	}
	cancel()
	if err := resp.Body.Close(); err != nil {
		return &attempt{err: err}
	}
	a.undone = isUndone(resp.StatusCode, a.body)
	return a
}

type cancelled struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelled) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// isUndone reports whether an answer says that the request was not executed and may be sent to another backend.
func isUndone(status int, body []byte) bool {
	if status != http.StatusServiceUnavailable && status != http.StatusMisdirectedRequest {
		return false
	}
	var problem api.Problem
	if json.Unmarshal(body, &problem) != nil {
		return false
	}
	switch problem.Code {
	case api.CodeUnavailable, api.CodeOverloaded, api.CodeDraining, api.CodeMisdirected:
		return true
	}
	return false
}

// hopHeaders belong to one connection (RFC 9110, 7.6.1).
var hopHeaders = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// guardHeaders were checked by the balancer's guard. They refer to a host name that the backend does not know.
var guardHeaders = []string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"}

func removeHopHeaders(h http.Header) {
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}

func (r *request) outgoing(ctx context.Context, b *backend, by string) *http.Request {
	out := r.Clone(ctx)
	out.RequestURI, out.Close = "", false
	out.URL.Scheme, out.URL.Host = b.url.Scheme, b.url.Host
	out.Body, out.ContentLength, out.TransferEncoding = http.NoBody, int64(len(r.body)), nil
	if len(r.body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(r.body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
	}
	removeHopHeaders(out.Header)
	for _, name := range guardHeaders {
		out.Header.Del(name)
	}
	out.Host = "" // the backend's own
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		out.Header.Set("X-Forwarded-For", strings.TrimPrefix(strings.Join(append(out.Header.Values("X-Forwarded-For"), host), ", "), ", "))
	}
	out.Header.Set("X-Forwarded-Host", r.Host)
	out.Header.Set("Via", "1.1 "+by)
	return out
}
