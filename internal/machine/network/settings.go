package network

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/netns"
)

// KernelSetting is a kernel setting of a namespace.
type KernelSetting struct {
	name, value string
	// lesser is the fallback if the kernel refuses value.
	lesser string
	// given is set for a value from the topology. If the kernel refuses it, making the node fails.
	given bool
}

// settings of every node, the same on every host. A new namespace would otherwise copy the host's TCP congestion control
// and buffers.
var settings = []KernelSetting{
	{name: congestionControl, value: "cubic"},
	// A stream fills its link only if its window is bandwidth x round trip: the kernel's 4 MB of send buffer limit 100 ms
	// to 283 Mbit/s.
	{name: "net.ipv4.tcp_rmem", value: "4096 131072 67108864"},
	{name: "net.ipv4.tcp_wmem", value: "4096 65536 67108864"},
	{name: "net.ipv4.tcp_slow_start_after_idle", value: "1"},
	{name: "net.ipv4.tcp_ecn", value: "2"},
	// Metrics of one connection must not influence the next, after the link has changed.
	{name: "net.ipv4.tcp_no_metrics_save", value: "1"},
	// New devices have no IPv6: router discovery and announcements would count as the nodes' packets. "lo" keeps ::1.
	{name: "net.ipv6.conf.default.disable_ipv6", value: "1"},
	// With two links between a pair, answers may take the other one.
	{name: "net.ipv4.conf.all.rp_filter", value: "0"},
	{name: "net.ipv4.conf.default.rp_filter", value: "0"},
	// Unprivileged ping. A user namespace refuses groups that it does not map.
	{name: "net.ipv4.ping_group_range", value: "0 2147483647", lesser: "0 0"},
}

// routingSettings are for nodes that forward packets.
var routingSettings = []KernelSetting{
	{name: "net.ipv4.ip_forward", value: "1"},
	// No ICMP redirects: routing daemons choose the path.
	{name: "net.ipv4.conf.all.send_redirects", value: "0"},
	{name: "net.ipv4.conf.default.send_redirects", value: "0"},
	{name: "net.ipv4.conf.all.accept_redirects", value: "0"},
}

// ipv6Settings give devices link-local addresses at once and disable the rest of IPv6.
var ipv6Settings = []KernelSetting{
	{name: "net.ipv6.conf.default.disable_ipv6", value: "0"},
	{name: "net.ipv6.conf.default.accept_dad", value: "0"},
	{name: "net.ipv6.conf.default.accept_ra", value: "0"},
	{name: "net.ipv6.conf.default.router_solicitations", value: "0"},
}

// Settings returns the settings of nodes: the common ones, those for forwarding or IPv6, and the values of tcp, whose keys
// are names without "net.ipv4.tcp_".
func Settings(forward, ipv6 bool, tcp map[string]string) []KernelSetting {
	all := slices.Clone(settings)
	var more []KernelSetting
	if forward {
		more = append(more, routingSettings...)
	}
	if ipv6 {
		more = append(more, ipv6Settings...)
	}
	for _, name := range slices.Sorted(maps.Keys(tcp)) {
		more = append(more, KernelSetting{name: "net.ipv4.tcp_" + name, value: tcp[name], given: true})
	}
	for _, s := range more {
		if i := slices.IndexFunc(all, func(x KernelSetting) bool { return x.name == s.name }); i >= 0 {
			all[i] = s
		} else {
			all = append(all, s)
		}
	}
	return all
}

func (s KernelSetting) path() string { return path(s.name) }

func path(name string) string { return "/proc/sys/" + strings.ReplaceAll(name, ".", "/") }

// Apply sets the settings in the calling thread's namespace. It fails if a setting from the topology is refused.
// ReadSettings reports the others.
func Apply(settings []KernelSetting) error {
	for _, s := range settings {
		err := write(s.path(), s.value)
		if errors.Is(err, unix.EINVAL) && s.lesser != "" {
			err = write(s.path(), s.lesser)
		}
		if errors.Is(err, unix.EPERM) && s.name == congestionControl {
			err = allowed(s.value, func() error { return write(s.path(), s.value) })
		}
		if err != nil && (s.given || !refused(err)) {
			return s.failed(err)
		}
	}
	return nil
}

func (s KernelSetting) failed(err error) error {
	if s.name == congestionControl {
		return congestionError(s.value, err)
	}
	err = fmt.Errorf("set %s to %q: %w", s.name, s.value, err)
	if s.given {
		err = advice.With(err, "leave it out of the topology's defaults.tcp, or use a machine whose kernel accepts it")
	}
	return err
}

// refused reports whether a setting is missing or read-only; containers may mount /proc/sys read-only.
func refused(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)
}

func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// inherited are host settings that apply to nodes: maximum socket buffers and the default queueing discipline.
var inherited = []string{"net.core.rmem_max", "net.core.wmem_max", "net.core.default_qdisc"}

// ReadSettings returns the effective settings of a namespace, with inherited ones, and a warning for each difference.
func ReadSettings(namespace string, settings []KernelSetting) (got map[string]string, warnings []string, err error) {
	got = make(map[string]string, len(settings)+len(inherited))
	for _, name := range inherited {
		if value, err := read(path(name)); err == nil { // a namespace of a container does not show them
			got[name] = value
		}
	}
	err = netns.Do(namespace, func() error {
		for _, s := range settings {
			value, err := read(s.path())
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("read %s: %w", s.name, err)
			}
			got[s.name] = value
			if err != nil || value == s.value || value == s.lesser {
				continue
			}
			warning := fmt.Sprintf("%s is %q in the nodes, not %q", s.name, value, s.value)
			if s.name == congestionControl {
				warning += "; " + remedy(s.value)
			}
			warnings = append(warnings, warning)
		}
		return nil
	})
	return got, warnings, err
}

// read returns a setting with its fields separated by single blanks.
func read(path string) (string, error) {
	text, err := os.ReadFile(path)
	return strings.Join(strings.Fields(string(text)), " "), err
}

const (
	congestionControl = "net.ipv4.tcp_congestion_control"
	availableControls = "/proc/sys/net/ipv4/tcp_available_congestion_control"
	allowedControls   = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
)

// CongestionControls returns the controls that are loaded in the kernel. It may load others from modules.
func CongestionControls() []string {
	text, err := read(availableControls)
	if err != nil {
		return nil
	}
	return strings.Fields(text)
}

// allowed calls set while the host permits its namespaces a congestion control. A kernel with bbr as default permits reno
// and bbr only, most others reno and cubic, and only the host's namespace can change that. The list applies to the whole
// host, so allowed locks and restores it.
func allowed(control string, set func() error) error {
	undo := make(chan struct{})
	ready, undone := make(chan error), make(chan error, 1)
	// The calling thread is in a node's namespace, this goroutine in the host's.
	go func() { undone <- allowUntil(control, ready, undo) }()
	if err := <-ready; err != nil {
		return err
	}
	err := set()
	close(undo)
	return errors.Join(err, <-undone)
}

// allowUntil adds a congestion control to the list until undo is closed. It sends nil or an error on ready.
func allowUntil(control string, ready chan<- error, undo <-chan struct{}) error {
	list, err := os.OpenFile(allowedControls, os.O_RDWR, 0)
	if err != nil {
		ready <- err
		return nil
	}
	defer list.Close()
	before, err := lockedList(list)
	there := slices.Contains(strings.Fields(before), control)
	if err == nil && !there {
		err = writeList(list, before+" "+control)
	}
	ready <- err
	if err != nil || there {
		return nil
	}
	<-undo
	if err := writeList(list, before); err != nil {
		return fmt.Errorf("put %s back to %q: %w", allowedControls, before, err)
	}
	return nil
}

// lockedList locks the list until the file is closed, and reads it.
func lockedList(list *os.File) (string, error) {
	if err := unix.Flock(int(list.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", allowedControls, err)
	}
	return read(allowedControls)
}

func writeList(list *os.File, text string) error {
	_, err := list.WriteAt([]byte(text), 0)
	return err
}

func congestionError(control string, err error) error {
	wrapped := fmt.Errorf("set %s to %q: %w", congestionControl, control, err)
	if errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("%w: the kernel of this machine has no such congestion control", wrapped), "%s", remedy(control))
	}
	return advice.With(wrapped, "%s", remedy(control))
}

// remedy returns the advice that makes a congestion control available.
func remedy(control string) string {
	if have := CongestionControls(); have != nil && !slices.Contains(have, control) {
		return fmt.Sprintf("load its module as root (modprobe tcp_%s), or choose one that the kernel has (%s) as defaults.tcp.congestion_control", control, strings.Join(have, ", "))
	}
	list, err := read(allowedControls)
	if err != nil {
		return "let root run skerry on a machine where /proc/sys is writable"
	}
	return fmt.Sprintf("let root allow it in namespaces: sysctl -w net.ipv4.tcp_allowed_congestion_control=%q", list+" "+control)
}
