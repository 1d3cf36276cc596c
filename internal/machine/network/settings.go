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

// Setting is a kernel setting of a namespace.
type Setting struct {
	name, value string
	// lesser is tried when the kernel refuses value.
	lesser string
	// given says that the topology gives the value: a node without it is not made.
	given bool
}

// settings of every node, the same on every host. The kernel copies those of TCP from the host into a new
// namespace where they are its congestion control and its buffers.
var settings = []Setting{
	{name: congestionControl, value: "cubic"},
	// A stream fills its link only when its window is bandwidth x round trip: with the
	// kernel's 4 MB of sending, 100 ms cap it at 283 Mbit/s, whatever the link.
	{name: "net.ipv4.tcp_rmem", value: "4096 131072 67108864"},
	{name: "net.ipv4.tcp_wmem", value: "4096 65536 67108864"},
	{name: "net.ipv4.tcp_slow_start_after_idle", value: "1"},
	{name: "net.ipv4.tcp_ecn", value: "2"},
	// What one connection learnt of a link must not shape the next, after the link
	// has changed.
	{name: "net.ipv4.tcp_no_metrics_save", value: "1"},
	// Devices made from here on have no IPv6: the kernel would look for routers and
	// announce itself on every link, and count that as the nodes' packets. "lo" keeps ::1.
	{name: "net.ipv6.conf.default.disable_ipv6", value: "1"},
	// Of two links between a pair, answers may take the other one.
	{name: "net.ipv4.conf.all.rp_filter", value: "0"},
	{name: "net.ipv4.conf.default.rp_filter", value: "0"},
	// ping without rights. In a user namespace, groups that it does not map are refused.
	{name: "net.ipv4.ping_group_range", value: "0 2147483647", lesser: "0 0"},
}

// routingSettings are those of nodes that pass packets on.
var routingSettings = []Setting{
	{name: "net.ipv4.ip_forward", value: "1"},
	// A node that passes packets on is no reason to send them another way: daemons decide.
	{name: "net.ipv4.conf.all.send_redirects", value: "0"},
	{name: "net.ipv4.conf.default.send_redirects", value: "0"},
	{name: "net.ipv4.conf.all.accept_redirects", value: "0"},
}

// ipv6Settings give devices link-local addresses at once, and nothing else of IPv6.
var ipv6Settings = []Setting{
	{name: "net.ipv6.conf.default.disable_ipv6", value: "0"},
	{name: "net.ipv6.conf.default.accept_dad", value: "0"},
	{name: "net.ipv6.conf.default.accept_ra", value: "0"},
	{name: "net.ipv6.conf.default.router_solicitations", value: "0"},
}

// Settings returns those of nodes: all of them, those of nodes that pass packets on or have IPv6, and with the values
// of tcp, by their names without "net.ipv4.tcp_".
func Settings(forward, ipv6 bool, tcp map[string]string) []Setting {
	all := slices.Clone(settings)
	var more []Setting
	if forward {
		more = append(more, routingSettings...)
	}
	if ipv6 {
		more = append(more, ipv6Settings...)
	}
	for _, name := range slices.Sorted(maps.Keys(tcp)) {
		more = append(more, Setting{name: "net.ipv4.tcp_" + name, value: tcp[name], given: true})
	}
	for _, s := range more {
		if i := slices.IndexFunc(all, func(x Setting) bool { return x.name == s.name }); i >= 0 {
			all[i] = s
		} else {
			all = append(all, s)
		}
	}
	return all
}

func (s Setting) path() string { return path(s.name) }

func path(name string) string { return "/proc/sys/" + strings.ReplaceAll(name, ".", "/") }

// Apply sets what the kernel accepts, in the calling thread's namespace, and fails where a setting that the topology
// gives is refused. ReadSettings reports the others.
func Apply(settings []Setting) error {
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

// failed describes a setting that the kernel refused.
func (s Setting) failed(err error) error {
	if s.name == congestionControl {
		return congestionError(s.value, err)
	}
	err = fmt.Errorf("set %s to %q: %w", s.name, s.value, err)
	if s.given {
		err = advice.With(err, "leave it out of the topology's defaults.tcp, or use a machine whose kernel accepts it")
	}
	return err
}

// refused tells that a setting is not there or not to be changed; containers may have
// /proc/sys mounted read-only.
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

// inherited are settings of the host that nodes share: they bound what sockets may ask for, and choose the queues of
// devices.
var inherited = []string{"net.core.rmem_max", "net.core.wmem_max", "net.core.default_qdisc"}

// ReadSettings returns the settings of a namespace as they are, with those that it shares with the host, and a warning
// for each that is not as it should be.
func ReadSettings(namespace string, settings []Setting) (got map[string]string, warnings []string, err error) {
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

// read returns the value of a setting, its fields separated by single blanks.
func read(path string) (string, error) {
	text, err := os.ReadFile(path)
	return strings.Join(strings.Fields(string(text)), " "), err
}
