package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// carBytes is the layer-3 size of a train's packets: small enough for any
	// tunnel's MTU, and 10,000 bits.
	carBytes = 1250
	// carHeader is what IPv4 and UDP add to a packet's payload.
	carHeader = 28
	// carMark is what a packet carries: the train's nonce and its time of sending.
	carMark = 16
	// bookkeeping is what the kernel charges a socket's buffer for one packet,
	// rounded up.
	bookkeeping = 4096
)

// car is one packet of a train as it arrived. Times are ns of CLOCK_REALTIME.
type car struct {
	sent, arrived int64
	// place counts the packets that reached the receiver before it, those that its
	// full socket buffer dropped included.
	place int
}

// sendTrain sends n packets back to back from one place to the other and returns
// those that arrived, in order of arrival. It gives up waiting for the first one
// after patience, for more when none came for gap.
func sendTrain(ctx context.Context, from, to Inside, nonce uint64, n int, gap time.Duration) ([]car, error) {
	receiver, err := listen(to, n)
	if err != nil {
		return nil, err
	}
	defer receiver.Close()
	sender, err := dial(from, receiver.LocalAddr().(*net.UDPAddr), n)
	if err != nil {
		return nil, err
	}
	defer sender.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		past := time.Unix(1, 0)
		receiver.SetReadDeadline(past)
		sender.SetWriteDeadline(past)
	})
	defer stop()

	sent := make(chan error, 1)
	go func() { sent <- pushTrain(sender, nonce, n) }()
	cars, err := pullTrain(ctx, receiver, nonce, n, gap)
	cancel()
	if pushed := <-sent; pushed != nil && len(cars) == 0 && err == nil {
		err = fmt.Errorf("sending to %s: %w", to.Addr(), pushed)
	}
	return cars, err
}

func listen(at Inside, n int) (conn *net.UDPConn, err error) {
	addr, err := netip.ParseAddr(at.Addr())
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", at.Addr(), err)
	}
	err = at.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", at.Addr(), err)
	}
	return prepare(conn, n)
}

func dial(from Inside, to *net.UDPAddr, n int) (conn *net.UDPConn, err error) {
	err = from.Do(func() (err error) {
		conn, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from.Addr())}, to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sending from %s: %w", from.Addr(), err)
	}
	return prepare(conn, n)
}

// prepare sets a socket up for n packets and closes it when it cannot.
func prepare(conn *net.UDPConn, n int) (*net.UDPConn, error) {
	raw, err := conn.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) {
			failed = errors.Join(
				growBuffers(int(fd), n*bookkeeping),
				stampPackets(int(fd), 0),
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

func pushTrain(conn *net.UDPConn, nonce uint64, n int) error {
	var p [carBytes - carHeader]byte
	binary.BigEndian.PutUint64(p[:], nonce)
	var failed error
	for range n {
		binary.BigEndian.PutUint64(p[8:], uint64(time.Now().UnixNano()))
		_, err := conn.Write(p[:])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return failed
		case err != nil && !errors.Is(err, syscall.ENOBUFS):
			failed = err
		}
	}
	return failed
}

func pullTrain(ctx context.Context, conn *net.UDPConn, nonce uint64, n int, gap time.Duration) ([]car, error) {
	var buf [carBytes]byte
	var oob [controlSize]byte
	cars := make([]car, 0, n)
	limit := patience
	for {
		if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return cars, err
		}
		if err := ctx.Err(); err != nil { // after the deadline, lest it undo AfterFunc's
			return cars, err
		}
		size, oobn, _, _, err := conn.ReadMsgUDPAddrPort(buf[:], oob[:])
		switch {
		case ctx.Err() != nil:
			return cars, ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return cars, nil
		case errors.Is(err, syscall.ECONNREFUSED):
			continue
		case err != nil:
			return cars, fmt.Errorf("receiving a packet train: %w", err)
		case size < carMark || binary.BigEndian.Uint64(buf[:]) != nonce:
			continue
		}
		about := parseControl(oob[:oobn])
		cars = append(cars, car{
			sent:    int64(binary.BigEndian.Uint64(buf[8:])),
			arrived: about.stamp,
			place:   len(cars) + int(about.drops),
		})
		if len(cars)+int(about.drops) >= n {
			return cars, nil
		}
		limit = gap
	}
}
