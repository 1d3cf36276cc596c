package linktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
	"skerry/test/testkit"
)

// perfect is a link without impairments.
var perfect link.Quality

func (s *suite) create(t *testing.T) {
	b := s.bench(t)
	spec := b.spec(0, perfect, perfect)
	spec.MTU = 1400
	b.create(spec, b.spec(1, perfect, perfect))
	for _, want := range []struct {
		ns     *testkit.NS
		device string
		mtu    int
	}{{b.a, "a0", 1400}, {b.b, "b0", 1400}, {b.a, "a1", 1500}, {b.b, "b1", 1500}} {
		err := want.ns.Do(func() error {
			dev, err := net.InterfaceByName(want.device)
			if err != nil {
				return err
			}
			if dev.Flags&net.FlagUp == 0 || dev.MTU != want.mtu {
				t.Errorf("%s: flags %v, MTU %d; want it up, with MTU %d", want.device, dev.Flags, dev.MTU, want.mtu)
			}
			addrs, err := dev.Addrs()
			if len(addrs) > 0 {
				t.Errorf("%s has addresses: %v", want.device, addrs)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", want.device, err)
		}
	}
	for i := range 2 {
		w := b.addressLink(i)
		checkComplete(t, w.send(s.flood(100)), 100)
		checkComplete(t, w.sendTo(w.far, w.near, s.flood(100)), 100)
	}
}

// allOrNone creates a valid link together with an invalid one.
func (s *suite) allOrNone(t *testing.T) {
	b := s.bench(t)
	b.create(b.spec(7, perfect, perfect))
	tests := []struct {
		name  string
		spoil func(*link.Spec)
		want  error
	}{
		{"no such namespace", func(s *link.Spec) { s.B.Netns = filepath.Join(t.TempDir(), "none") }, nil},
		{"device name taken", func(s *link.Spec) { s.B.Device = "b7" }, nil},
		{"device name taken at the other end", func(s *link.Spec) { s.A.Device = "a7" }, nil},
		{"device name taken within the call", func(s *link.Spec) { s.A.Device = "a0" }, nil},
		{"ID taken", func(s *link.Spec) { s.ID = "link-7" }, link.ErrExists},
		{"ID taken within the call", func(s *link.Spec) { s.ID = "link-0" }, link.ErrExists},
		{"no ID", func(s *link.Spec) { s.ID = "" }, link.ErrInvalid},
		{"loss over 1", func(s *link.Spec) { s.BA.Loss = 2 }, link.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			good, bad := b.spec(0, perfect, perfect), b.spec(1, perfect, perfect)
			tt.spoil(&bad)
			err := b.engine.Create(t.Context(), []link.Spec{good, bad})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Create = %v, want an error that is %v", err, tt.want)
			}
			b.checkLinks(t, "link-7")
			for device, ns := range map[string]*testkit.NS{"a0": b.a, "b0": b.b, "a1": b.a, "b1": b.b} {
				if ns.HasDevice(t, device) {
					t.Errorf("device %s was left behind", device)
				}
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.engine.Create(ctx, []link.Spec{b.spec(0, perfect, perfect)}); !errors.Is(err, context.Canceled) {
			t.Errorf("Create = %v, want Canceled", err)
		}
		b.checkLinks(t, "link-7")
	})
	b.create(b.spec(0, perfect, perfect))
	checkComplete(t, b.addressLink(0).send(s.flood(10)), 10)
}

// checkLinks checks which links the engine has.
func (b *bench) checkLinks(t *testing.T, ids ...string) {
	t.Helper()
	stats, err := b.engine.Stats(t.Context())
	if err != nil {
		t.Fatalf("Stats: %v", err)
	}
	got := map[string]bool{}
	for _, st := range stats {
		got[st.ID] = true
	}
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links in Stats (-want +got):\n%s", diff)
	}
}

func (s *suite) remove(t *testing.T) {
	b := s.bench(t)
	for i := range 3 {
		b.wire(i, perfect, perfect)
	}
	if err := b.engine.Remove(t.Context(), "link-0", "link-2", "never was"); err != nil {
		t.Fatalf("Remove: %v", err)
	}
	for _, device := range []string{"a0", "a2"} {
		b.checkDeviceGone(b.a, device)
	}
	for _, device := range []string{"b0", "b2"} {
		b.checkDeviceGone(b.b, device)
	}
	b.checkLinks(t, "link-1")
	if err := b.engine.Remove(t.Context(), "link-0"); err != nil {
		t.Errorf("Remove of a removed link: %v", err)
	}
	checkComplete(t, b.wire(0, perfect, perfect).send(s.flood(10)), 10) // the names are free again
}

func (b *bench) checkDeviceGone(ns *testkit.NS, device string) {
	b.t.Helper()
	if ns.HasDevice(b.t, device) {
		b.t.Errorf("device %s is still there", device)
	}
}

func (s *suite) close(t *testing.T) {
	b := s.bench(t)
	b.create(b.spec(0, perfect, perfect), b.spec(1, perfect, perfect))
	b.close()
	for i := range 2 {
		b.checkDeviceGone(b.a, fmt.Sprintf("a%d", i))
		b.checkDeviceGone(b.b, fmt.Sprintf("b%d", i))
	}
}

func (s *suite) unknown(t *testing.T) {
	b := s.bench(t)
	if _, err := b.engine.Stats(t.Context(), "never was"); !errors.Is(err, link.ErrUnknown) {
		t.Errorf("Stats of a link that is not = %v, want ErrUnknown", err)
	}
	if err := b.engine.Set(t.Context(), []link.Change{{ID: "never was", AB: &perfect}}); !errors.Is(err, link.ErrUnknown) {
		t.Errorf("Set of a link that is not = %v, want ErrUnknown", err)
	}
	if err := b.engine.Remove(t.Context(), "never was"); err != nil {
		t.Errorf("Remove of a link that is not = %v, want none", err)
	}
	b.checkLinks(t)
}

// concurrent creates, changes and removes links in several goroutines.
func (s *suite) concurrent(t *testing.T) {
	b := s.bench(t)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for round := range 3 {
				spec := b.spec(i, perfect, perfect)
				if err := b.engine.Create(t.Context(), []link.Spec{spec}); err != nil {
					t.Errorf("Create %s: %v", spec.ID, err)
					return
				}
				q := link.Quality{Latency: time.Duration(round+1) * time.Millisecond}
				if err := b.engine.Set(t.Context(), []link.Change{{ID: spec.ID, AB: &q}}); err != nil {
					t.Errorf("Set %s: %v", spec.ID, err)
				}
				if _, err := b.engine.Stats(t.Context()); err != nil {
					t.Errorf("Stats: %v", err)
				}
				if err := b.engine.Remove(t.Context(), spec.ID); err != nil {
					t.Errorf("Remove %s: %v", spec.ID, err)
				}
			}
		})
	}
	group.Wait()
	b.checkLinks(t)
}
