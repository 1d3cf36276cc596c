package device

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	etherHeader = 14
	// socketBuffer is the buffer of a packet socket, limited by net.core.rmem_max without CAP_NET_ADMIN.
	socketBuffer = 32 << 20
	// removalGroup is the device group for joint removal.
	removalGroup = 0x5ee
)

// createNamespace creates the namespace of the emulator's veth ends, so that the machine's own namespace
// gets no device.
func (m *Maker) createNamespace() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("create namespace for veth devices: %w", err)
	}
	// Without IPv6 the emulator's ends send no announcements. If the setting cannot be written, a few
	// extra packets are sent and ignored.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	own, err := openNetns(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	m.own = own
	return err
}

// makeVeth creates a pair with one end in the namespace ns.
//
// IFF_NOARP disables neighbour discovery, which would cost a round trip and count as traffic. Frames then carry
// the sender's own address as destination, and the emulator replaces it by the receiver's.
func (m *Maker) makeVeth(w Request, ns int) (*Port, error) {
	if err := enterNetns(m.own); err != nil {
		return nil, err
	}
	p := &Port{FD: -1, LinkHeader: etherHeader, MAC: randomMAC()}
	pair := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{MTU: w.mtu(), TxQLen: queueLength},
		PeerName:         w.Device,
		PeerHardwareAddr: p.MAC[:],
		PeerNamespace:    netlink.NsFd(ns),
	}
	name := make([]byte, 6)
	rand.Read(name)
	pair.Name = fmt.Sprintf("e%x", name)
	if err := netlink.LinkAdd(pair); err != nil {
		return nil, fmt.Errorf("create veth pair: %w", err)
	}
	p.index = pair.Index
	err := configure(pair.Name, w.mtu(), unix.IFF_UP|unix.IFF_NOARP)
	if err == nil {
		err = p.open()
	}
	if err == nil {
		err = configureIn(ns, w)
	}
	if err == nil {
		return p, nil
	}
	if p.FD >= 0 {
		unix.Close(p.FD)
	}
	return nil, errors.Join(err, m.removeVeths([]*Port{p}))
}

// configureIn configures the node's end of a pair; the calling thread stays in ns.
func configureIn(ns int, w Request) error {
	if err := enterNetns(ns); err != nil {
		return err
	}
	if err := limitOffloads(w.Device); err != nil {
		return fmt.Errorf("limit offloads: %w", err)
	}
	return configure(w.Device, w.mtu(), unix.IFF_UP|unix.IFF_NOARP)
}

// open opens the packet socket of the emulator's end.
func (p *Port) open() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("packet socket: %w", err)
	}
	p.FD = fd
	// Bypass the queueing discipline: until it is active, up to a second after the node's end is up, it
	// drops everything.
	for _, option := range []int{unix.PACKET_VNET_HDR, unix.PACKET_IGNORE_OUTGOING, unix.PACKET_QDISC_BYPASS} {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1); err != nil {
			return fmt.Errorf("packet socket option %d: %w", option, err)
		}
	}
	for forced, plain := range map[int]int{unix.SO_RCVBUFFORCE: unix.SO_RCVBUF, unix.SO_SNDBUFFORCE: unix.SO_SNDBUF} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, forced, socketBuffer) == nil {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, socketBuffer); err != nil {
			return fmt.Errorf("buffer of packet socket: %w", err)
		}
	}
	all := uint16(unix.ETH_P_ALL)
	address := &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: p.index}
	if err := unix.Bind(fd, address); err != nil {
		return fmt.Errorf("bind packet socket: %w", err)
	}
	return nil
}

// removeVeths removes pairs. A pair whose other namespace was removed is already gone.
func (m *Maker) removeVeths(ports []*Port) error {
	if err := enterNetns(m.own); err != nil {
		return err
	}
	for _, p := range ports {
		if p.index == 0 {
			continue
		}
		if err := setGroup(p.index, removalGroup); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("mark veth pair for removal: %w", err)
		}
	}
	if err := removeGroup(removalGroup); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove veth pairs: %w", err)
	}
	return nil
}

// randomMAC returns a random locally administered unicast address.
func randomMAC() (mac [6]byte) {
	rand.Read(mac[:])
	mac[0] = mac[0]&^1 | 2
	return mac
}

const TUNPath = "/dev/net/tun"

// offloads of a TUN device, best first. USO needs Linux 6.2.
var offloads = []int{
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6,
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN,
}

// makeTUN creates a TUN device in the namespace ns, where the calling thread stays.
func makeTUN(w Request, ns int) (*Port, error) {
	if err := enterNetns(ns); err != nil {
		return nil, err
	}
	fd, err := unix.Open(TUNPath, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", TUNPath, err)
	}
	if err := setUpTUN(fd, w); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Port{FD: fd}, nil
}

func setUpTUN(fd int, w Request) error {
	request, err := unix.NewIfreq(w.Device)
	if err != nil {
		return fmt.Errorf("name %q: %w", w.Device, err)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("create TUN device: %w", err)
	}
	if err := enableOffload(fd); err != nil {
		return err
	}
	return configure(w.Device, w.mtu(), unix.IFF_UP)
}

func enableOffload(fd int) (err error) {
	for _, flags := range offloads {
		if err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, flags); err == nil {
			return nil
		}
	}
	return fmt.Errorf("enable segmentation offload: %w", err)
}

// maxClosers bounds concurrent closes. Closing a TUN device waits 17 ms in the kernel: 2000 in sequence
// take 35 s.
const maxClosers = 64

func closeAll(ports []*Port) error {
	var (
		group errgroup.Group
		mu    sync.Mutex
		errs  []error
	)
	group.SetLimit(maxClosers)
	for _, p := range ports {
		group.Go(func() error {
			if err := unix.Close(p.FD); err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("close device: %w", err))
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return nil, so that all ports are closed
	return errors.Join(errs...)
}
