package tunnel

import (
	"context"
	"fmt"
	"strings"
	"time"

	"skerry/internal/base/linger"
)

const (
	// handshakeTimeout bounds the wait for tunnels to be keyed: one over a link that is
	// down, or loses packets, is keyed when it carries again.
	handshakeTimeout = 2 * time.Second
	handshakePoll    = 5 * time.Millisecond
)

// handshake has one end of each tunnel greet the other, and waits until they have agreed on
// keys. Left to themselves both ends would begin with the first packets that a lab sends,
// at about the same moment; of two handshakes that cross each other on the way neither
// succeeds, and the next one is tried five seconds later (RekeyTimeout).
func handshake(ctx context.Context, callers []endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	for _, e := range callers {
		// A link that takes no packet is no error of the tunnel over it.
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

// hasKeys tells whether the two ends of a tunnel have agreed on keys.
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
