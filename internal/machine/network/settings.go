package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
)

// Setting is a kernel setting of a namespace.
type Setting struct {
	name, value string
	// lesser is tried when the kernel refuses value.
	lesser string
}

// settings that a node differs in from the kernel's defaults.
var settings = []Setting{
	// A stream fills its link only when its window is bandwidth x round trip: with the
	// kernel's 4 MB of sending, 100 ms cap it at 283 Mbit/s, whatever the link.
	{name: "net.ipv4.tcp_rmem", value: "4096 131072 67108864"},
	{name: "net.ipv4.tcp_wmem", value: "4096 65536 67108864"},
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

// Settings are those that nodes differ in: all of them, and those that pass packets on or have
// IPv6.
func Settings(forward, ipv6 bool) []Setting {
	all := slices.Clone(settings)
	var more []Setting
	if forward {
		more = append(more, routingSettings...)
	}
	if ipv6 {
		more = append(more, ipv6Settings...)
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

func (s Setting) path() string { return "/proc/sys/" + strings.ReplaceAll(s.name, ".", "/") }

// apply sets what the kernel knows, in the calling thread's namespace. What it
// refuses shows when settings are read back.
func apply(settings []Setting) error {
	for _, s := range settings {
		err := write(s.path(), s.value)
		if errors.Is(err, unix.EINVAL) && s.lesser != "" {
			err = write(s.path(), s.lesser)
		}
		if err != nil && !refused(err) {
			return fmt.Errorf("set %s: %w", s.name, err)
		}
	}
	return nil
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

// ReadSettings returns the settings of a namespace as they are, and a warning for each
// that is not as it should be.
func ReadSettings(namespace string, settings []Setting) (got map[string]string, warnings []string, err error) {
	got = make(map[string]string, len(settings))
	err = netns.Do(namespace, func() error {
		for _, s := range settings {
			text, err := os.ReadFile(s.path())
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("read %s: %w", s.name, err)
			}
			value := strings.Join(strings.Fields(string(text)), " ")
			got[s.name] = value
			if err == nil && value != s.value && value != s.lesser {
				warnings = append(warnings, fmt.Sprintf("%s is %q in the nodes, not %q", s.name, value, s.value))
			}
		}
		return nil
	})
	return got, warnings, err
}
