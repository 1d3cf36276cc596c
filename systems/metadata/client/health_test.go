package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/test/testkit"
)

// answering is a replica that answers every request with one result, and counts changes.
func answering(t *testing.T, changes *atomic.Int32) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a truncated body has no mkdir
		if strings.Contains(string(body), "mkdir") {
			changes.Add(1)
		}
		_, _ = io.WriteString(w, `{"results":[{}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// impatient returns a client with short timeouts.
func impatient(addrs string) *Client {
	c := New(addrs)
	c.pingAfter, c.minPingTimeout = 200*time.Millisecond, time.Second
	return c
}

var (
	stat  = metadata.Command{Op: metadata.Stat, Path: "/a"}
	mkdir = metadata.Command{Op: metadata.Mkdir, Path: "/a", Mode: 0o755}
)

// TestHungReplica sends requests to a hung replica. Reads, and changes with identities, are repeated on another
// replica.
func TestHungReplica(t *testing.T) {
	t.Parallel()
	var changes atomic.Int32
	good := answering(t, &changes)
	hung := testkit.SilentServer(t)
	c := impatient(hung + "," + good)
	defer c.Close()
	if r := c.DoOne(t.Context(), mkdir); r.Err != nil || changes.Load() != 1 {
		t.Errorf("a change that was sent: %v, applied %d times", r.Err, changes.Load())
	}
}

func TestHungRead(t *testing.T) {
	t.Parallel()
	c := impatient(testkit.SilentServer(t) + "," + answering(t, new(atomic.Int32)))
	defer c.Close()
	if r := c.DoOne(t.Context(), stat); r.Err != nil {
		t.Error(r.Err)
	}
}

// TestHungSingleServer sends two requests to a hung server without replicas: the second one is not sent.
func TestHungSingleServer(t *testing.T) {
	t.Parallel()
	c := impatient(testkit.SilentServer(t))
	defer c.Close()
	if r := c.DoOne(t.Context(), stat); !errors.Is(r.Err, ErrHung) {
		t.Errorf("a read: %v", r.Err)
	}
	if r := c.DoOne(t.Context(), mkdir); !errors.Is(r.Err, ErrHung) || !strings.Contains(r.Err.Error(), unchanged) {
		t.Errorf("a change: %v", r.Err)
	}
}

// TestUnreachable loses all packets to a replica. No request has reached it, so changes are sent to the next
// replica.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	var changes atomic.Int32
	good := answering(t, &changes)
	c := impatient("192.0.2.1:80," + good)
	defer c.Close()
	var d net.Dialer
	c.SetDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "192.0.2.1:") {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return d.DialContext(ctx, network, addr)
	})
	if r := c.DoOne(t.Context(), mkdir); r.Err != nil || changes.Load() != 1 {
		t.Errorf("%v, done %d times", r.Err, changes.Load())
	}
}

// TestSlowReplicaIsNotHung waits for an answer that takes longer than many pings.
func TestSlowReplicaIsNotHung(t *testing.T) {
	t.Parallel()
	pinged := make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			pinged <- struct{}{}
			return
		}
		for range 5 {
			<-pinged
		}
		_, _ = io.WriteString(w, `{"results":[{}]}`)
	}))
	defer s.Close()
	c := New(s.URL)
	c.pingAfter = time.Millisecond
	c.minPingTimeout = time.Minute
	defer c.Close()
	if r := c.DoOne(t.Context(), mkdir); r.Err != nil {
		t.Error(r.Err)
	}
}

func TestPingTimeout(t *testing.T) {
	r := newReplica("")
	for _, took := range []time.Duration{300, 300, 300, 9000} { // the last waited for a lock
		r.recordAnswer(took*time.Millisecond, time.Second)
	}
	if got := r.patience(time.Second); got < 600*time.Millisecond || got > 1100*time.Millisecond {
		t.Errorf("after round trips of 300 ms: %v", got)
	}
	for range 8 {
		r.recordAnswer(900*time.Millisecond, time.Second)
	}
	if got := r.patience(time.Second); got < 1200*time.Millisecond {
		t.Errorf("after round trips of 900 ms: %v", got)
	}
}
