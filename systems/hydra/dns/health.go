package dns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"
)

// target is an address whose health is looked after.
type target struct {
	Target
	addr  netip.Addr
	check Check
	// turns is how often its health has changed, which begins well: it is lost while that is
	// odd. The zone's serial number counts turns, so that no answer holds a change without it.
	turns atomic.Uint32
	// row is how many checks in a row said the opposite of its health; watch's own.
	row int
}

func newTarget(t Target, c Check) *target {
	return &target{Target: t, addr: netip.MustParseAddr(t.Address).Unmap(), check: c}
}

func (t *target) healthy() bool { return t.turns.Load()%2 == 0 }

// watch checks the target until ctx ends. first is called after the first check, whose
// word counts at once; changed whenever its health changes.
func (t *target) watch(ctx context.Context, client *http.Client, first func(), changed func(t *target, why error)) {
	defer first()
	if t.Check == "" {
		return
	}
	tick := time.NewTicker(time.Duration(t.check.Interval))
	defer tick.Stop()
	err := t.ask(ctx, client)
	if err != nil && ctx.Err() == nil {
		t.turns.Add(1)
		changed(t, err)
	}
	first()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err = t.ask(ctx, client); ctx.Err() == nil && t.note(err == nil) {
			changed(t, err)
		}
	}
}

// note counts one check, and tells whether the target's health is another one by it.
func (t *target) note(ok bool) bool {
	if ok == t.healthy() {
		t.row = 0
		return false
	}
	t.row++
	if ok && t.row < t.check.Rise || !ok && t.row < t.check.Fall {
		return false
	}
	t.row = 0
	t.turns.Add(1)
	return true
}

var errUnhealthy = errors.New("unhealthy")

// ask checks the target once.
func (t *target) ask(ctx context.Context, client *http.Client) error {
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
