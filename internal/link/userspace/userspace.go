// Package userspace is the link engine that forwards packets in a process of its own. It requires only
// TUN devices or packet sockets from the kernel.
//
// The process runs real-time threads (package dataplane) and is controlled through a unix socket with
// one JSON document per line. Without ExitWithOwner it outlives the command that started it.
//
//	lab ── Engine ──socket──► agent: server ─► device, dataplane ─► packets
package userspace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/link/userspace/device"
)

var (
	// ErrEnded means that the emulator's process has ended.
	ErrEnded = errors.New("the link emulator has ended")
	// ErrUnavailable means that this machine cannot run the engine.
	ErrUnavailable = errors.New("the userspace link engine cannot run here")
)

// Available returns the kind of devices that this process can create, or ErrUnavailable.
func Available() (device.Kind, error) {
	if err := checkCapabilities(); err != nil {
		return "", err
	}
	fd, err := unix.Open(device.TUNPath, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return device.TUN, nil
	}
	s, socketErr := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if socketErr == nil {
		unix.Close(s)
		return device.Veth, nil
	}
	err = fmt.Errorf("%w: open %s: %w; packet socket: %w", ErrUnavailable, device.TUNPath, err, socketErr)
	return "", advice.With(err, "load the tun module (modprobe tun) or make %s accessible", device.TUNPath)
}

func checkCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for name, bit := range map[string]int{"CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN} {
		if data[bit/32].Effective&(1<<(bit%32)) == 0 {
			return advice.With(fmt.Errorf("%w: %s is missing", ErrUnavailable, name),
				"run as root, or within a user namespace: unshare --user --map-root-user --net --mount")
		}
	}
	return nil
}
