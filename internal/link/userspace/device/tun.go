package device

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

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
