package serve

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inheritVariable names the descriptor of a listener that a process got from the one that it
// replaced: skerry enters a network namespace without the machine's loopback where it is not
// root, and browsers are on the machine's.
const inheritVariable = "SKERRY_UI_FD"

// HandOn lets the program that is going to replace this process go on listening.
func HandOn(l net.Listener) error {
	t, ok := l.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("handing on the dashboard's listener: %T is no TCP listener", l)
	}
	f, err := t.File()
	if err != nil {
		return fmt.Errorf("handing on the dashboard's listener: %w", err)
	}
	fd, err := unix.Dup(int(f.Fd())) // without close-on-exec
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("handing on the dashboard's listener: %w", err)
	}
	return os.Setenv(inheritVariable, strconv.Itoa(fd))
}

// Inherited is the listener that HandOn handed on; nil where there is none.
func Inherited() (net.Listener, error) {
	v := os.Getenv(inheritVariable)
	if v == "" {
		return nil, nil
	}
	if err := os.Unsetenv(inheritVariable); err != nil {
		return nil, err
	}
	fd, err := strconv.Atoi(v)
	if err != nil {
		return nil, fmt.Errorf("taking over the dashboard's listener: %s=%s: %w", inheritVariable, v, err)
	}
	f := os.NewFile(uintptr(fd), "dashboard")
	l, err := net.FileListener(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("taking over the dashboard's listener: %w", err)
	}
	return l, nil
}
