package device

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// pathBuffer is the size of each socket buffer to another machine, in bytes: 30 ms of a gigabit.
const pathBuffer = 4 << 20

// openPath creates the UDP socket of a path to another machine in the namespace ns, where the calling thread
// stays. A packet travels with its virtio_net_hdr, which describes its incomplete checksum. Packets are never fragmented.
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
		// UDP_GRO reads datagrams together since Linux 5.0. Older systems return single packets.
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

// setBuffer sets a socket buffer, limited by the system's maximum if forcing it is refused.
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
