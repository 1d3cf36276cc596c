package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// listen opens a socket at a place; port 0 selects any port.
func listen(at Inside, port uint16, buffer int) (conn *net.UDPConn, err error) {
	addr, err := netip.ParseAddr(at.Addr())
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", at.Addr(), err)
	}
	err = at.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, port)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", at.Addr(), err)
	}
	return prepareSocket(conn, buffer)
}

func dial(from Inside, to *net.UDPAddr, buffer int) (conn *net.UDPConn, err error) {
	err = from.Do(func() (err error) {
		conn, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from.Addr())}, to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sending from %s: %w", from.Addr(), err)
	}
	return prepareSocket(conn, buffer)
}

// prepareSocket configures a socket for a train, and closes it on an error.
func prepareSocket(conn *net.UDPConn, buffer int) (*net.UDPConn, error) {
	raw, err := conn.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) {
			failed = errors.Join(
				growBuffers(int(fd), buffer),
				requestTimestamps(int(fd), 0),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1))
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("preparing a socket for a packet train: %w", err)
	}
	return conn, nil
}
