// Package probe measures an emulated network from inside its namespaces: round trips with RTT, bandwidth with
// Bandwidth.
//
// Both use the kernel's packet timestamps. They measure the time from the sender's IP stack to the receiver's, and
// not the time until the scheduler runs the prober. A busy machine affects the results only if it delays the packets.
package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Inside is a place in the network. Its dynamic type must be comparable, for example a pointer.
type Inside interface {
	// Do calls f with the calling thread inside the place's network namespace.
	Do(f func() error) error
	// Addr is the place's IPv4 address.
	Addr() string
}

// Pair is one direction between two places.
type Pair struct{ From, To Inside }

var (
	// ErrNoAnswer means that no packet of a train arrived.
	ErrNoAnswer = errors.New("no packet arrived")
	// ErrDisturbed means that the machine delayed every train, so that there is no result.
	ErrDisturbed = errors.New("the machine disturbed every packet train")
	// ErrStarved means that the prober could not send as fast as the link transmits. The result is a lower bound.
	ErrStarved = errors.New("the prober could not keep the link busy")
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
		return nil, fmt.Errorf("listen at %s: %w", at.Addr(), err)
	}
	return prepareSocket(conn, buffer)
}

func dial(from Inside, to *net.UDPAddr, buffer int) (conn *net.UDPConn, err error) {
	err = from.Do(func() (err error) {
		conn, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from.Addr())}, to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("send from %s: %w", from.Addr(), err)
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
		return nil, fmt.Errorf("configure socket for packet train: %w", err)
	}
	return conn, nil
}

// control is the kernel's metadata of a packet.
type control struct {
	stamp int64  // ns of CLOCK_REALTIME at the kernel
	drops uint32 // packets dropped by the full socket buffer so far
}

// controlSize fits both messages and an IP_RECVERR one.
const controlSize = 256

// requestTimestamps requests timestamps of received packets and, with extra flags, of sent ones.
func requestTimestamps(fd, extra int) error {
	flags := unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE | extra
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, flags); err != nil {
		return fmt.Errorf("request packet timestamps: %w", err)
	}
	return nil
}

// parseControl parses the control messages of a packet. A packet without a timestamp, as before the kernel's first
// timestamps take effect, has the present time.
func parseControl(oob []byte) control {
	c := control{stamp: time.Now().UnixNano()}
	for len(oob) >= unix.SizeofCmsghdr {
		header, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			break
		}
		oob = rest
		if header.Level != unix.SOL_SOCKET {
			continue
		}
		switch {
		case header.Type == unix.SO_TIMESTAMPING && len(data) >= 16:
			// struct scm_timestamping: three timespecs, the first is the software one.
			sec := int64(binary.NativeEndian.Uint64(data))
			nsec := int64(binary.NativeEndian.Uint64(data[8:]))
			c.stamp = sec*1e9 + nsec
		case header.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			c.drops = binary.NativeEndian.Uint32(data)
		}
	}
	return c
}

// timestampDelay is how long the kernel takes to enable timestamps in the background, after the first request on the machine.
const timestampDelay = 20 * time.Millisecond

// enableTimestamps keeps timestamps enabled until the caller calls off.
func enableTimestamps() (off func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open socket for packet timestamps: %w", err)
	}
	if err := requestTimestamps(fd, 0); err != nil {
		unix.Close(fd)
		return nil, err
	}
	time.Sleep(timestampDelay)
	return func() { unix.Close(fd) }, nil
}

// growBuffers sets a socket's buffers to size bytes, limited by the system's maximum without CAP_NET_ADMIN.
func growBuffers(fd, size int) error {
	for _, option := range [][2]int{
		{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF},
		{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF},
	} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, option[0], size) == nil {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option[1], size); err != nil {
			return fmt.Errorf("set socket buffers: %w", err)
		}
	}
	return nil
}
