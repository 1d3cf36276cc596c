package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/rootless"
	"skerry/internal/link/netem"
	"skerry/internal/link/userspace"
	"skerry/internal/link/userspace/device"
)

// rights holds, for each kind of namespace, nil or why this user cannot make it.
type rights struct {
	network error // network namespaces
	users   error // user namespaces, which stand in for root
}

func namespaces(ctx context.Context) rights {
	return rights{
		network: netns.OnNewThread(func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
				return advice.With(fmt.Errorf("creating network and mount namespaces: %w", err), "run skerry as root")
			}
			return nil
		}),
		users: rootless.Available(ctx),
	}
}

func (r rights) findings() []Finding {
	network := Finding{Name: "network namespaces", State: OK, Detail: "can be made"}
	switch {
	case r.network != nil && r.users == nil:
		network = Finding{Name: network.Name, State: Limited,
			Detail: "inside user namespaces only: clusters work; limits on CPU and memory and real-time priority may not",
			Mend:   "run skerry as root for these"}
	case r.network != nil:
		network = failed(network.Name, Missing, r.network)
	}
	users := Finding{Name: "user namespaces", State: OK, Detail: "labs run without root"}
	if r.users != nil {
		users = failed(users.Name, Missing, r.users)
		if r.network == nil {
			users.State = Limited
		}
	}
	return []Finding{network, users}
}

// linkers holds, for each kind of device, nil or why this user cannot make it.
type linkers struct {
	netem, tun, packet, veth, userspace error
	kind                                device.Kind
}

func links(r rights) linkers {
	l := linkers{netem: netem.Available(), tun: tryTUN(r), packet: tryPacket(r), veth: tryLink(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}, r)}
	l.kind, l.userspace = userspace.Available()
	return l
}

func (l linkers) findings() []Finding {
	row := func(name string, err error, ok string) Finding {
		switch {
		case err == nil:
			return Finding{Name: name, State: OK, Detail: ok}
		case errors.Is(err, errNotTried):
			return failed(name, Limited, err)
		}
		return failed(name, Missing, err)
	}
	n := row("netem", l.netem, "the kernel shapes links")
	if l.netem != nil && (l.userspace == nil || errors.Is(l.veth, errNotTried)) {
		n.State = Limited
		n.Detail += "; links are shaped by a process of skerry's own"
	}
	tun := row("TUN devices", l.tun, "with segmentation offload")
	packet := row("packet sockets", l.packet, "AF_PACKET, instead of TUN without root")
	if l.tun != nil && l.packet == nil {
		tun.State = Limited
	}
	return []Finding{n, tun, packet, row("veth pairs", l.veth, "can be made")}
}

// errNotTried is returned for a check that needs root.
var errNotTried = errors.New("cannot be tried without root")

// isolated moves the calling thread to a new network namespace.
func isolated(r rights) error {
	if r.network != nil {
		return advice.With(errNotTried, "sudo skerry doctor")
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("creating a network namespace: %w", err)
	}
	return nil
}

// tryTUN makes a TUN device like the userspace engine's.
func tryTUN(r rights) error {
	return netns.OnNewThread(func() error {
		fd, err := unix.Open(device.TUNPath, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			err = fmt.Errorf("opening %s: %w", device.TUNPath, err)
			if errors.Is(err, unix.ENOENT) {
				return advice.With(err, "modprobe tun; where that makes no file: mkdir -p /dev/net && mknod %s c 10 200", device.TUNPath)
			}
			return advice.With(err, "modprobe tun && chmod 666 %s", device.TUNPath)
		}
		defer unix.Close(fd)
		if err := isolated(r); err != nil {
			return err
		}
		request, err := unix.NewIfreq("doctor")
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_TUN_EXCL)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
			return fmt.Errorf("creating a TUN device: %w", err)
		}
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6); err != nil {
			return fmt.Errorf("switching segmentation offload on: %w", err)
		}
		return nil
	})
}

func tryPacket(r rights) error {
	return netns.OnNewThread(func() error {
		if err := isolated(r); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return advice.With(fmt.Errorf("opening a packet socket: %w", err), "modprobe af_packet")
		}
		return unix.Close(fd)
	})
}

// tryLink makes a kernel device.
func tryLink(l netlink.Link, r rights) error {
	return netns.OnNewThread(func() error {
		if err := isolated(r); err != nil {
			return err
		}
		h, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer h.Close()
		if err := h.LinkAdd(l); err != nil {
			err = fmt.Errorf("creating a %s device: %w", l.Type(), err)
			if errors.Is(err, unix.EOPNOTSUPP) {
				return advice.With(err, "modprobe %s, or a kernel that has it", l.Type())
			}
			return err
		}
		return nil
	})
}

func wireGuard(r rights) Finding {
	if err := tryLink(&netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: "wg"}}, r); err != nil {
		f := failed("WireGuard", Limited, err)
		if !errors.Is(err, errNotTried) {
			f.Detail += "; links cannot be encrypted by the kernel"
		}
		return f
	}
	return Finding{Name: "WireGuard", State: OK, Detail: "in the kernel"}
}

func ipvs() Finding {
	if _, err := netlink.GenlFamilyGet("IPVS"); err != nil {
		return Finding{Name: "IPVS", State: Limited, Detail: "the kernel has none", Mend: "modprobe ip_vs"}
	}
	return Finding{Name: "IPVS", State: OK, Detail: "in the kernel"}
}

// iproute2 is optional: it helps users inspect labs. Skerry uses netlink.
func iproute2() Finding {
	for _, path := range []string{"/sbin/ip", "/usr/sbin/ip", "/bin/ip", "/usr/bin/ip"} {
		if _, err := os.Stat(path); err == nil {
			return Finding{Name: "iproute2", State: OK, Detail: "installed; skerry does not need it"}
		}
	}
	return Finding{Name: "iproute2", State: OK, Detail: "not installed and not needed"}
}
