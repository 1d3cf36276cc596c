package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
)

const (
	congestionControl = "net.ipv4.tcp_congestion_control"
	availableControls = "/proc/sys/net/ipv4/tcp_available_congestion_control"
	allowedControls   = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
)

// CongestionControls returns the controls that are loaded in the kernel. It may load others from modules.
func CongestionControls() []string {
	text, err := read(availableControls)
	if err != nil {
		return nil
	}
	return strings.Fields(text)
}

// allowed calls set while the host permits its namespaces a congestion control. A kernel with bbr as default permits reno
// and bbr only, most others reno and cubic, and only the host's namespace can change that. The list applies to the whole
// host, so allowed locks and restores it.
func allowed(control string, set func() error) error {
	undo := make(chan struct{})
	ready, undone := make(chan error), make(chan error, 1)
	// The calling thread is in a node's namespace, this goroutine in the host's.
	go func() { undone <- allowUntil(control, ready, undo) }()
	if err := <-ready; err != nil {
		return err
	}
	err := set()
	close(undo)
	return errors.Join(err, <-undone)
}

// allowUntil adds a congestion control to the list until undo is closed. It sends nil or an error on ready.
func allowUntil(control string, ready chan<- error, undo <-chan struct{}) error {
	list, err := os.OpenFile(allowedControls, os.O_RDWR, 0)
	if err != nil {
		ready <- err
		return nil
	}
	defer list.Close()
	before, err := lockedList(list)
	there := slices.Contains(strings.Fields(before), control)
	if err == nil && !there {
		err = writeList(list, before+" "+control)
	}
	ready <- err
	if err != nil || there {
		return nil
	}
	<-undo
	if err := writeList(list, before); err != nil {
		return fmt.Errorf("put %s back to %q: %w", allowedControls, before, err)
	}
	return nil
}

// lockedList locks the list until the file is closed, and reads it.
func lockedList(list *os.File) (string, error) {
	if err := unix.Flock(int(list.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", allowedControls, err)
	}
	return read(allowedControls)
}

func writeList(list *os.File, text string) error {
	_, err := list.WriteAt([]byte(text), 0)
	return err
}

func congestionError(control string, err error) error {
	wrapped := fmt.Errorf("set %s to %q: %w", congestionControl, control, err)
	if errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("%w: the kernel of this machine has no such congestion control", wrapped), "%s", remedy(control))
	}
	return advice.With(wrapped, "%s", remedy(control))
}

// remedy returns the advice that makes a congestion control available.
func remedy(control string) string {
	if have := CongestionControls(); have != nil && !slices.Contains(have, control) {
		return fmt.Sprintf("load its module as root (modprobe tcp_%s), or choose one that the kernel has (%s) as defaults.tcp.congestion_control", control, strings.Join(have, ", "))
	}
	list, err := read(allowedControls)
	if err != nil {
		return "let root run skerry on a machine where /proc/sys is writable"
	}
	return fmt.Sprintf("let root allow it in namespaces: sysctl -w net.ipv4.tcp_allowed_congestion_control=%q", list+" "+control)
}
