package tunnel

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// A port that was let go may be in use for a moment:
//
//  1. Who chose the port holds it by a socket, and starts another process meanwhile. Until that runs its
//     program it has copies of all sockets.
//  2. Who chose it closes the socket, for this process to listen there: the copy still does.
const portTimeout, portRetry = 5 * time.Second, 5 * time.Millisecond

// retryPortInUse tries again what finds its port in use.
func retryPortInUse(listen func() error) error {
	for late := time.Now().Add(portTimeout); ; time.Sleep(portRetry) {
		if err := listen(); !errors.Is(err, unix.EADDRINUSE) || time.Now().After(late) {
			return err
		}
	}
}
