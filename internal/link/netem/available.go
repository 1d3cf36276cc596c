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

// ErrUnavailable means that this kernel, or this user, cannot create netem qdiscs.
var ErrUnavailable = errors.New("netem is not available")

// Available tests netem in a new namespace. It returns ErrUnavailable with advice if netem cannot be used.
func Available() error {
	return netns.OnNewThread(tryNetem)
}

// loopback is the interface index of "lo" in every namespace.
const loopback = 1

func tryNetem() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return advice.With(fmt.Errorf("%w: making a network namespace: %w", ErrUnavailable, err),
			"run as root, or inside a user namespace (unshare -Urn)")
	}
	n := &namespace{path: fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()), packets: -1, sysfs: -1, file: -1}
	defer n.close()
	if err := n.open(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	lo := &device{space: n, index: loopback}
	err := lo.build(tables{}.options(link.Quality{}, 0), newShape(link.Quality{}, defaultMTU))
	switch {
	case errors.Is(err, unix.ENOENT):
		return advice.With(fmt.Errorf("%w: the kernel lacks a qdisc: %w", ErrUnavailable, err),
			"load it with `modprobe -a sch_prio sch_netem sch_hfsc`, or install the kernel modules that have it; the userspace engine does without")
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}
