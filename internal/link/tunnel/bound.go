package tunnel

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// A released port may stay in use for a moment:
//
//  1. The process that chose the port holds it with a socket and forks another process. Until the new process
//     executes its program, it has copies of all sockets.
//  2. The first process closes its socket, so that this process can listen. The copy still occupies the port.
const portTimeout, portRetry = 5 * time.Second, 5 * time.Millisecond

// retryPortInUse calls listen again while its port is in use.
func retryPortInUse(listen func() error) error {
	for late := time.Now().Add(portTimeout); ; time.Sleep(portRetry) {
		if err := listen(); !errors.Is(err, unix.EADDRINUSE) || time.Now().After(late) {
			return err
		}
	}
}
