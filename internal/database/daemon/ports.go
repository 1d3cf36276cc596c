package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/machine/host"
)

// portTimeout bounds the try whether a port is free.
const portTimeout = 5 * time.Second

// PortsFree returns an error that wraps ErrPortTaken when something listens on one of the
// ports of a node's address. Start asks too: it tells early, and in words, what a server would
// die of; who empties a server's directory before it has to know earlier. Name is what the
// error calls the server.
//
// It asks by connecting: a listener of its own, which a program that is being started
// elsewhere in this process holds open for a moment, could be in the server's way.
func PortsFree(ctx context.Context, h host.Host, name string, ports ...int) error {
	for _, port := range ports {
		err := host.Accepts(ctx, h, net.JoinHostPort(host.Listen(h), strconv.Itoa(port)), portTimeout)
		if err == nil {
			err := fmt.Errorf("starting %s on %s: port %d of %s: %w", name, h.Name(), port, host.Listen(h), ErrPortTaken)
			return advice.With(err, "end what listens there, or choose another port in the database's options")
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("starting %s on %s: trying port %d: %w", name, h.Name(), port, err)
		}
	}
	return nil
}
