package tunnel

import (
	"context"
	"fmt"
	"strings"
	"time"

	"skerry/internal/base/linger"
)

const (
	// handshakeTimeout bounds the wait for keys. A tunnel over a link that is down or lossy completes its
	// handshake later.
	handshakeTimeout = 2 * time.Second
	handshakePoll    = 5 * time.Millisecond
)

// handshake makes one end of each tunnel initiate, and waits until the ends have agreed on keys. Otherwise both ends
// would initiate with the first packets of a lab, at about the same moment. Crossing handshakes both fail, and the
// next attempt follows five seconds later (RekeyTimeout).
func handshake(ctx context.Context, callers []endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	for _, e := range callers {
		// A failed send is not an error of the tunnel; the link may be down.
		_ = e.LookupPeer(e.peer).SendHandshakeInitiation(false)
	}
	for _, e := range callers {
		for {
			keyed, err := e.hasKeys()
			if err != nil {
				return fmt.Errorf("asking the tunnel %s for its state: %w", e.name, err)
			}
			if keyed {
				break
			}
			if linger.For(ctx, handshakePoll) != nil {
				return nil
			}
		}
	}
	return nil
}

// hasKeys reports whether the two ends have agreed on keys.
func (e endpoint) hasKeys() (bool, error) {
	state, err := e.IpcGet()
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(state) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "last_handshake_time_nsec="); ok && at != "0" {
			return true, nil
		}
	}
	return false, nil
}
