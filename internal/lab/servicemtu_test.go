package lab

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/lab/overlay/babel"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
	"skerry/test/testkit"
)

// No packet that fits the container network is lost because of its size, over any network below it.
func TestFullSizePacketsCrossServices(t *testing.T) {
	for name, prepare := range map[string]func(*Config){
		"plain":     func(*Config) {},
		"wireguard": func(c *Config) { c.Topology.Encryption = topology.WireGuard },
		"babel over wireguard": func(c *Config) {
			c.Topology.Encryption, c.Topology.Overlay = topology.WireGuard, topology.Overlay{Kind: babel.Name}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := withService(t, "mtu", serviceOf(topology.ServiceIP, topology.Shared))
			prepare(&c)
			if c.Topology.Overlay.Routed() {
				testkit.Need(t, testkit.Installed(babel.Recipe))
			}
			var err error
			if c.Overlay, err = NewOverlay(t.Context(), c.Topology.Overlay); err != nil {
				t.Fatal(err)
			}
			l := mustUp(t, c)
			a, errA := l.Member("n0")
			b, errB := l.Member("n2")
			if err := errors.Join(errA, errB); err != nil {
				t.Fatal(err)
			}
			startGreeter(t, b)
			payload := make([]byte, 2<<20)
			rand.Read(payload)
			if who, err := exchange(a, addressOf(t, l, "n2"), payload); err != nil || who != "n2" {
				t.Errorf("a long stream: %q, %v", who, err)
			}
			mtu := l.ServiceRunning().MTU()
			if err := datagram(t, a, b, mtu-28); err != nil { // IPv4 and UDP headers
				t.Errorf("a packet of %d bytes: %v", mtu, err)
			}
			if err := datagram(t, a, b, mtu-27); !errors.Is(err, unix.EMSGSIZE) {
				t.Errorf("a packet of %d bytes: %v, want EMSGSIZE", mtu+1, err)
			}
		})
	}
}

// datagram sends datagrams of a size that must not be fragmented until one arrives.
func datagram(t *testing.T, from, to host.Host, bytes int) error {
	t.Helper()
	var in, out *net.UDPConn
	err := errors.Join(to.(host.NamespaceHost).Do(func() (err error) {
		in, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(host.Listen(to))})
		return err
	}))
	if err != nil {
		return err
	}
	defer in.Close()
	err = from.(host.NamespaceHost).Do(func() (err error) {
		out, err = net.DialUDP("udp4", nil, in.LocalAddr().(*net.UDPAddr))
		return err
	})
	if err != nil {
		return err
	}
	defer out.Close()
	raw, err := out.SyscallConn()
	if err != nil {
		return err
	}
	if controlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	}); controlErr != nil || err != nil {
		return errors.Join(controlErr, err)
	}
	buffer := make([]byte, 2*bytes)
	for range 30 {
		if _, err := out.Write(make([]byte, bytes)); err != nil {
			return err
		}
		if err := in.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		n, err := in.Read(buffer)
		if err == nil && n == bytes {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%d bytes arrived: %w", n, err)
		}
	}
	return os.ErrDeadlineExceeded
}
