package overlay_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/lab"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
)

// Over tunnels, several hops and a link that fails during a stream, full-size packets arrive, and larger ones are
// refused at the sender. No packet is lost.
func TestFullSizePacketsCrossOverlays(t *testing.T) {
	l := fig2Over(t, newBabel(t), topology.WireGuard)
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
	from, errFrom := l.Node("vm0")
	to, errTo := l.Node("vm2")
	if err := errors.Join(errFrom, errTo); err != nil {
		t.Fatal(err)
	}
	const headers = 20 + 8 // of IPv4 and UDP
	within(t, far, "a packet of the tunnel's MTU arrives", func() error { return datagram(t, from, to, tunnel.MTU-headers) })
	if err := datagram(t, from, to, tunnel.MTU-headers+1); !errors.Is(err, unix.EMSGSIZE) {
		t.Errorf("a packet of the MTU + 1: error %v, want EMSGSIZE", err)
	}
	stream(t, l, from, to)
	within(t, far, "past c: b", usesPath(l, "vm0", "vm2", "b"))
	if err := l.Carrier("c", true); err != nil {
		t.Fatal(err)
	}
	within(t, far, "c is back: c+d", usesPath(l, "vm0", "vm2", "c+d"))
}

// datagram sends a UDP datagram that must not be fragmented, and waits for its arrival.
func datagram(t *testing.T, from, to host.NamespaceHost, size int) error {
	t.Helper()
	server, err := inside(to, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(to.Addr())})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := inside(from, func() (*net.UDPConn, error) {
		return net.DialUDP("udp4", nil, server.LocalAddr().(*net.UDPAddr))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	raw, err := client.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	})
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write(make([]byte, size)); err != nil {
		return err
	}
	if err := server.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := server.Read(make([]byte, 2*size))
	if err == nil && n != size {
		err = io.ErrShortBuffer
	}
	return err
}

// stream sends 512 KiB over one connection, the first half over c+d, where c then fails.
func stream(t *testing.T, l *lab.Lab, from, to host.NamespaceHost) {
	t.Helper()
	listener, err := inside(to, func() (net.Listener, error) { return net.Listen("tcp4", net.JoinHostPort(to.Addr(), "0")) })
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	half := make([]byte, 256<<10)
	rand.Read(half)
	halves := make(chan []byte, 2)
	go func() {
		defer close(halves)
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for range 2 {
			got := make([]byte, len(half))
			if _, err := io.ReadFull(c, got); err != nil {
				return // the check below detects missing data
			}
			halves <- got
		}
	}()
	c, err := inside(from, func() (net.Conn, error) { return net.DialTimeout("tcp4", listener.Addr().String(), far) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 2 {
		began := time.Now()
		if err := c.SetDeadline(began.Add(far)); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if err := l.Carrier("c", false); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Write(half); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-halves:
			t.Logf("half %d arrived after %v", i+1, time.Since(began).Round(time.Millisecond))
			if !bytes.Equal(got, half) {
				t.Fatalf("half %d differs from the sent data", i+1)
			}
		case <-time.After(far):
			t.Fatalf("half %d did not arrive", i+1)
		}
	}
}

// inside opens a socket in the network namespace of a node.
func inside[T any](h host.NamespaceHost, open func() (T, error)) (opened T, err error) {
	err = h.Do(func() error {
		opened, err = open()
		return err
	})
	return opened, err
}
