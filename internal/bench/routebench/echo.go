package routebench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"skerry/internal/machine/host"
)

const (
	// echoPort is where the echo listens.
	echoPort = 7007
	// echoInterval is how often it is called: the resolution of an outage.
	echoInterval = 5 * time.Millisecond
)

// echoes calls one node from another all the time, over UDP, and keeps when each call
// was sent and whether an answer came.
type echoes struct {
	client, server net.PacketConn
	to             net.Addr
	cancel         context.CancelFunc
	running        sync.WaitGroup

	mu       sync.Mutex
	sent     []time.Time
	answered []bool
}

// startEchoes begins to call.
func startEchoes(ctx context.Context, from, to host.Inside) (*echoes, error) {
	e := &echoes{to: &net.UDPAddr{IP: net.ParseIP(to.Addr()), Port: echoPort}}
	var err error
	if e.server, err = listen(to, echoPort); err != nil {
		return nil, err
	}
	if e.client, err = listen(from, 0); err != nil {
		return nil, errors.Join(err, e.server.Close())
	}
	ctx, e.cancel = context.WithCancel(ctx)
	e.running.Go(e.answer)
	e.running.Go(e.hear)
	e.running.Go(func() { e.call(ctx) })
	return e, nil
}

// listen opens a UDP socket at a node's own address.
func listen(at host.Inside, port int) (c net.PacketConn, err error) {
	err = at.Do(func() error {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(at.Addr()), Port: port})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket on %s: %w", at.Name(), err)
	}
	return c, nil
}

func (e *echoes) answer() {
	var b [8]byte
	for {
		n, from, err := e.server.ReadFrom(b[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = e.server.WriteTo(b[:n], from) // no route: the call counts as lost
		}
	}
}

func (e *echoes) hear() {
	var b [8]byte
	for {
		n, _, err := e.client.ReadFrom(b[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n != len(b) {
			continue
		}
		e.mu.Lock()
		if i := binary.BigEndian.Uint64(b[:]); i < uint64(len(e.answered)) {
			e.answered[i] = true
		}
		e.mu.Unlock()
	}
}

func (e *echoes) call(ctx context.Context) {
	tick := time.NewTicker(echoInterval)
	defer tick.Stop()
	var b [8]byte
	for i := uint64(0); ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		e.sent, e.answered = append(e.sent, time.Now()), append(e.answered, false)
		e.mu.Unlock()
		binary.BigEndian.PutUint64(b[:], i)
		_, _ = e.client.WriteTo(b[:], e.to) // as above
	}
}

// since returns what became of the calls that were sent after a moment: how long after
// it the first one was sent that got an answer, and how many got none.
func (e *echoes) since(when time.Time) (healed time.Duration, ok bool, lost int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, at := range e.sent {
		switch {
		case at.Before(when):
		case !e.answered[i]:
			lost++
		case !ok:
			healed, ok = at.Sub(when), true
		}
	}
	return healed, ok, lost
}

// stop ends the calls.
func (e *echoes) stop() error {
	e.cancel()
	err := errors.Join(e.client.Close(), e.server.Close())
	e.running.Wait()
	return err
}
