package netem

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/netns"
	"skerry/internal/link"
)

// ErrUnavailable means that this kernel, or this user, cannot have netem qdiscs.
var ErrUnavailable = errors.New("netem is not available")

// Available tries netem in a namespace of its own and tells, wrapping ErrUnavailable
// and with advice, why it cannot be used; nil means that it can.
func Available() error {
	return netns.Throwaway(try)
}

// loopback is the index of "lo" in every namespace.
const loopback = 1

func try() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return advice.With(fmt.Errorf("%w: making a network namespace: %w", ErrUnavailable, err),
			"run as root, or inside a user namespace (unshare -Urn)")
	}
	n := &namespace{path: fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()), sysfs: -1, file: -1}
	defer n.close()
	if err := n.open(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	lo := &device{space: n, index: loopback}
	err := lo.newQdisc(tables{}.options(link.Quality{}, defaultMTU, 0))
	switch {
	case errors.Is(err, unix.ENOENT):
		return advice.With(fmt.Errorf("%w: the kernel has no sch_netem", ErrUnavailable),
			"load it with `modprobe sch_netem`, or install the kernel modules that have it; the userspace engine does without")
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}
