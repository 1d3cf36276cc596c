package device

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// pathBuffer is what a socket to another machine may keep each way, until the emulator reads it or it has left, in
// bytes: 30 ms of a gigabit.
const pathBuffer = 4 << 20

// openPath makes the socket by which a link leaves the machine, in the namespace ns, which the
// calling thread stays in. A packet travels with its virtio_net_hdr, which says what of its
// checksum is still to be done; it is never cut on the way.
func openPath(w Request, ns int) (*Port, error) {
	if err := enterNetns(ns); err != nil {
		return nil, err
	}
	local, family := sockaddr(w.Path.Local)
	remote, _ := sockaddr(w.Path.Remote)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket to another machine: %w", err)
	}
	if family == unix.AF_INET {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	} else {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
	}
	if err == nil {
		err = errors.Join(setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF), setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF))
	}
	if err == nil {
		// What came together is read together, since Linux 5.0; an older system hands over packet by packet.
		_ = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1)
	}
	if err = errors.Join(err, unix.Bind(fd, local)); err == nil {
		err = unix.Connect(fd, remote)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket from %v to %v on another machine: %w", w.Path.Local, w.Path.Remote, err), unix.Close(fd))
	}
	return &Port{FD: fd, Remote: true}, nil
}

// setBuffer gives a socket room: as much as it is to have, or up to the system's bound where more takes rights.
func setBuffer(fd, forced, asked int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, forced, pathBuffer) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, asked, pathBuffer)
}

func sockaddr(a netip.AddrPort) (unix.Sockaddr, int) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}, unix.AF_INET6
}
