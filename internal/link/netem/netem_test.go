package netem_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/link"
	"skerry/internal/link/netem"
	"skerry/test/linktest"
	"skerry/test/testkit"
)

// Links outlive the engine that made them, and another engine can adopt them.
func TestAdoptedLinksKeepWorking(t *testing.T) {
	testkit.Need(t, testkit.Root, kernel)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	spec := link.Spec{
		ID: "a~b", A: link.End{Netns: namespace(t), Device: "lk0"}, B: link.End{Netns: namespace(t), Device: "lk0"},
		AB: link.Quality{Latency: time.Millisecond, Loss: 0.5}, // packets are drawn alone
		BA: link.Quality{Latency: time.Millisecond},
	}
	first := netem.New(log)
	if err := first.Create(t.Context(), []link.Spec{spec}); err != nil {
		t.Fatal(err)
	}
	if err := first.Detach(); err != nil {
		t.Fatal(err)
	}
	second := netem.New(log)
	if err := second.Adopt(t.Context(), []link.Spec{spec}); err != nil {
		t.Fatal(err)
	}
	lossless := link.Quality{Latency: 2 * time.Millisecond}
	if err := second.Set(t.Context(), []link.Change{{ID: "a~b", AB: &lossless}}); err != nil {
		t.Error(err)
	}
	if stats, err := second.Stats(t.Context()); err != nil || len(stats) != 1 {
		t.Errorf("statistics %v, %v", stats, err)
	}
	err := netns.Do(spec.A.Netns, func() error {
		device, err := netlink.LinkByName("lk0")
		if err == nil && device.Attrs().GSOMaxSegs == 1 {
			t.Error("packets still travel alone on a link without loss")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if err := netem.New(log).Adopt(t.Context(), []link.Spec{spec}); err == nil {
		t.Error("a removed link was adopted")
	}
}

// namespace creates a network namespace for the test.
func namespace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ns")
	if err := netns.OnNewThread(func() error { return netns.Create(path) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		_ = os.Remove(path)
	})
	return path
}

// kernel is netem in the kernel that runs the test; TestNetemInVM provides one with netem.
var kernel = testkit.Feature{Name: "netem", Missing: func() string {
	if err := netem.Available(); err != nil {
		return err.Error()
	}
	return ""
}}

func TestContract(t *testing.T) {
	testkit.Need(t, testkit.Root, kernel)
	newEngine := func(t *testing.T) link.Engine {
		return netem.New(slog.New(slog.NewTextHandler(t.Output(), nil)))
	}
	linktest.Run(t, newEngine, linktest.Tolerances{
		Unseeded:         "netem takes a seed from Linux 6.6 on",
		JitterByPacket:   "netem draws a delay for each packet",
		HeaderCorruption: "netem flips bits of the whole frame",
	})
}
