package tunnel

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"skerry/internal/base/linger"
	"skerry/internal/kernel/netns"
)

// endpoint is one end of a tunnel whose packets this process forwards.
type endpoint struct {
	*device.Device
	name string
	peer device.NoisePublicKey
	// initiates is true for the end that starts the handshake.
	initiates bool
}

// openEndpoint creates the device and the socket of one end in its namespace. The device exists until the
// endpoint is closed.
func openEndpoint(own, peer End, log *slog.Logger) (endpoint, error) {
	e := endpoint{name: own.Device, peer: device.NoisePublicKey(peer.Key.PublicKey())}
	err := netns.Do(own.Netns, func() error {
		t, err := openTUN(own.Device)
		if err != nil {
			return err
		}
		e.Device = device.NewDevice(t, conn.NewStdNetBind(), &device.Logger{
			Verbosef: device.DiscardLogf,
			Errorf:   func(format string, args ...any) { log.Debug(fmt.Sprintf(format, args...), "tunnel", own.Device) },
		})
		// Up opens the socket, which must be in this namespace.
		if err := errors.Join(e.IpcSet(wireguardConfig(own, peer)), e.Up()); err != nil {
			e.Close()
			return err
		}
		return nil
	})
	if err != nil {
		return e, fmt.Errorf("create tunnel %s at %s: %w", own.Device, own.Addr, err)
	}
	return e, nil
}

// openTUN creates a TUN device for super-packets. It is unmonitored, because its events are visible only in
// its own namespace.
func openTUN(name string) (tun.Device, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create device %s: %w", name, err), unix.Close(fd))
	}
	t, _, err := tun.CreateUnmonitoredTUNFromFD(fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create device %s: %w", name, err), unix.Close(fd))
	}
	return t, nil
}

// wireguardConfig formats one end in WireGuard's configuration protocol, https://www.wireguard.com/xplatform/.
func wireguardConfig(own, peer End) string {
	public := peer.Key.PublicKey()
	return fmt.Sprintf("private_key=%s\nlisten_port=%d\npublic_key=%s\nendpoint=%s:%d\nallowed_ip=0.0.0.0/0\nallowed_ip=::/0\n",
		hex.EncodeToString(own.Key[:]), own.Port, hex.EncodeToString(public[:]), peer.Addr, peer.Port)
}

const (
	// handshakeTimeout bounds the wait for keys. A tunnel over a link that is down or lossy completes its
	// handshake later.
	handshakeTimeout = 2 * time.Second
	handshakePoll    = 5 * time.Millisecond
)

// handshake makes one end of each tunnel initiate, and waits until the ends have agreed on keys. Otherwise both ends
// would initiate with the first packets of a lab, at about the same moment. Crossing handshakes both fail, and the
// next attempt follows five seconds later (RekeyTimeout).
func handshake(ctx context.Context, callers []endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	for _, e := range callers {
		// A failed send is not an error of the tunnel; the link may be down.
		_ = e.LookupPeer(e.peer).SendHandshakeInitiation(false)
	}
	for _, e := range callers {
		for {
			keyed, err := e.hasKeys()
			if err != nil {
				return fmt.Errorf("get state of tunnel %s: %w", e.name, err)
			}
			if keyed {
				break
			}
			if linger.For(ctx, handshakePoll) != nil {
				return nil
			}
		}
	}
	return nil
}

// hasKeys reports whether the two ends have agreed on keys.
func (e endpoint) hasKeys() (bool, error) {
	state, err := e.IpcGet()
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(state) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "last_handshake_time_nsec="); ok && at != "0" {
			return true, nil
		}
	}
	return false, nil
}
