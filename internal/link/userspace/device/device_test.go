package device_test

import (
	"errors"
	"io/fs"
	"net"
	"regexp"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/link"
	"skerry/internal/link/userspace/device"
	"skerry/test/testkit"
)

func maker(t *testing.T, kind device.Kind) *device.Maker {
	t.Helper()
	testkit.Need(t, testkit.Root)
	if kind == device.TUN {
		testkit.Need(t, testkit.TUN)
	}
	m, err := device.NewMaker(kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func want(ns *testkit.NS, name string, mtu int) device.Request {
	return device.Request{End: link.End{Netns: ns.Path(), Device: name}, MTU: mtu}
}

var kinds = []device.Kind{device.TUN, device.Veth}

func TestMake(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			m := maker(t, kind)
			ns := testkit.Namespace(t)
			ports, err := m.Make(t.Context(), []device.Request{want(ns, "one", 0), want(ns, "two", 9000)})
			if err != nil {
				t.Fatal(err)
			}
			for name, mtu := range map[string]int{"one": 1500, "two": 9000} {
				err := ns.Do(func() error {
					dev, err := netlink.LinkByName(name)
					if err != nil {
						return err
					}
					a := dev.Attrs()
					if a.MTU != mtu || a.Flags&net.FlagUp == 0 || a.TxQLen < 1000 {
						t.Errorf("%s: MTU %d, %v, queue %d; want MTU %d, up, a queue of 1000 or more", name, a.MTU, a.Flags, a.TxQLen, mtu)
					}
					return nil
				})
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if got := ours(t); len(got) > 0 {
				t.Errorf("devices were created in the host's namespace: %v", got)
			}
			for _, p := range ports {
				if _, err := unix.Read(p.FD, make([]byte, 1<<17)); !errors.Is(err, unix.EAGAIN) {
					t.Errorf("reading a new device: %v, want EAGAIN", err)
				}
			}
			if err := m.Remove(ports); err != nil {
				t.Error(err)
			}
			if ns.HasDevice(t, "one") || ns.HasDevice(t, "two") {
				t.Error("a removed device is still there")
			}
		})
	}
}

// ours are the devices in the test's own namespace that a maker may have created. (Other programs may create devices
// meanwhile.)
func ours(t *testing.T) []string {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		if regexp.MustCompile(`^(one|two|e[0-9a-f]{12})$`).MatchString(i.Name) {
			names = append(names, i.Name)
		}
	}
	return names
}

func TestMakeAllOrNone(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			m := maker(t, kind)
			ns := testkit.Namespace(t)
			missing := device.Request{End: link.End{Netns: t.TempDir() + "/none", Device: "two"}}
			if _, err := m.Make(t.Context(), []device.Request{want(ns, "one", 0), missing}); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Make = %v, want ErrNotExist", err)
			}
			if ns.HasDevice(t, "one") {
				t.Error("a device was left behind")
			}
		})
	}
}

// Removing devices whose namespace is already removed succeeds.
func TestRemoveAfterTheNamespace(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			m := maker(t, kind)
			var ports []*device.Port
			t.Run("namespace", func(t *testing.T) {
				var err error
				if ports, err = m.Make(t.Context(), []device.Request{want(testkit.Namespace(t), "one", 0)}); err != nil {
					t.Fatal(err)
				}
			})
			if err := m.Remove(ports); err != nil {
				t.Error(err)
			}
		})
	}
}
