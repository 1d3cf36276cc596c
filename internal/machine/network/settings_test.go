package network

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/netns"
	"skerry/test/testkit"
)

// hostNamespace is the machine's namespace. Only there, root may choose the settings that namespaces may use.
var hostNamespace = testkit.Feature{Name: "host-namespace", Missing: func() string {
	f, err := os.OpenFile(allowedControls, os.O_RDWR, 0)
	if err != nil {
		return err.Error()
	}
	if err := f.Close(); err != nil {
		return err.Error()
	}
	return ""
}}

// applied applies settings in a new namespace and returns the resulting values.
func applied(settings []KernelSetting) (got map[string]string, err error) {
	err = netns.OnNewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := Apply(settings); err != nil {
			return err
		}
		got = map[string]string{}
		for _, s := range settings {
			if got[s.name], err = read(s.path()); err != nil {
				return err
			}
		}
		return nil
	})
	return got, err
}

// Every namespace has the settings of a server, whatever the host has and allows, and the host's settings do not
// change.
func TestSettingsDoNotDependOnTheHost(t *testing.T) {
	testkit.Need(t, testkit.Root, hostNamespace)
	before, err := read(allowedControls)
	if err != nil {
		t.Fatal(err)
	}
	var all errgroup.Group
	for range 16 { // concurrently: each one changes the permitted settings of the host and restores them
		all.Go(func() error {
			settings := Settings(true, true, nil)
			got, err := applied(settings)
			for _, s := range settings {
				if err == nil && got[s.name] != s.value {
					t.Errorf("%s is %q, not %q", s.name, got[s.name], s.value)
				}
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if after, err := read(allowedControls); err != nil || after != before {
		t.Errorf("permitted settings of the host changed: %q, were %q; %v", after, before, err)
	}
}

func TestSettingsOfATopology(t *testing.T) {
	testkit.Need(t, testkit.Root, hostNamespace)
	given := map[string]string{"congestion_control": "reno", "rmem": "4096 87380 6291456", "slow_start_after_idle": "0", "ecn": "1"}
	got, err := applied(Settings(false, false, given))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range given {
		if got["net.ipv4.tcp_"+name] != want {
			t.Errorf("%s is %q, not %q", name, got["net.ipv4.tcp_"+name], want)
		}
	}
}

func TestRefusedSettings(t *testing.T) {
	testkit.Need(t, testkit.Root, hostNamespace)
	for name, tt := range map[string]struct{ value, want, next string }{
		"congestion_control": {"none_such", `"none_such"`, "modprobe tcp_none_such"},
		"rmem":               {"0 1 2", "net.ipv4.tcp_rmem", "defaults.tcp"},
		"of_another_kernel":  {"1", "net.ipv4.tcp_of_another_kernel", "defaults.tcp"},
	} {
		_, err := applied(Settings(false, false, map[string]string{name: tt.value}))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(advice.Of(err), tt.next) {
			t.Errorf("%s: %v (%s)", name, err, advice.Of(err))
		}
	}
}

// A default setting that the kernel refuses is skipped, with a warning and advice.
func TestRefusedDefaultSettingWarns(t *testing.T) {
	testkit.Need(t, testkit.Root)
	if got := remedy("none_such"); !strings.Contains(got, "modprobe tcp_none_such") {
		t.Error(got)
	}
	if got := remedy("reno"); !strings.Contains(got, "sysctl -w net.ipv4.tcp_allowed_congestion_control=") {
		t.Error(got)
	}
	ns := testkit.Namespace(t)
	got, warnings, err := ReadSettings(ns.Path(), []KernelSetting{{name: congestionControl, value: "none_such"}})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], `not "none_such"; load its module`) {
		t.Errorf("%v, %v", warnings, err)
	}
	if got["net.core.rmem_max"] == "" {
		t.Errorf("settings shared with the host are missing: %v", got)
	}
}
