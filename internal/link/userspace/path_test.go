package userspace_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/link/userspace"
	"skerry/test/linktest"
	"skerry/test/testkit"
)

// split has links whose halves are on two emulators, as on two machines with a network between them.
type split struct {
	a, b  *userspace.Engine
	netns string // of the network between
	mu    sync.Mutex
	next  uint16
}

func newSplit(t *testing.T) *split {
	between := testkit.Namespace(t)
	return &split{a: start(t, options(t)), b: start(t, options(t)), netns: between.Path(), next: 10000}
}

func (s *split) Name() string { return "split" }

func (s *split) Create(ctx context.Context, specs []link.Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var near, far []link.Spec
	for _, x := range specs {
		if err := x.Validate(); err != nil {
			return err
		}
		s.next += 2
		here := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), s.next)
		there := netip.AddrPortFrom(here.Addr(), s.next+1)
		a, b := x, x
		a.B = link.End{Netns: s.netns, Path: &link.UDPPath{Local: here, Remote: there}}
		b.A, b.AB, b.Seed = x.B, x.BA, x.Seed+1<<32
		b.B = link.End{Netns: s.netns, Path: &link.UDPPath{Local: there, Remote: here}}
		a.BA, b.BA = link.Quality{}, link.Quality{}
		near, far = append(near, a), append(far, b)
	}
	if err := s.a.Create(ctx, near); err != nil {
		return err
	}
	if err := s.b.Create(ctx, far); err != nil {
		return errors.Join(err, s.a.Remove(context.WithoutCancel(ctx), names(specs)...))
	}
	return nil
}

func names(specs []link.Spec) (ids []string) {
	for _, x := range specs {
		ids = append(ids, x.ID)
	}
	return ids
}

func (s *split) Set(ctx context.Context, changes []link.Change) error {
	var near, far []link.Change
	for _, c := range changes { // both know all links and refuse the same ones
		near = append(near, link.Change{ID: c.ID, AB: c.AB})
		far = append(far, link.Change{ID: c.ID, AB: c.BA})
		for _, q := range []*link.Quality{c.AB, c.BA} {
			if q != nil && q.Validate() != nil {
				return q.Validate()
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.a.Set(ctx, near), s.b.Set(ctx, far))
}

func (s *split) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	near, err := s.a.Stats(ctx, ids...)
	if err != nil {
		return nil, err
	}
	far, err := s.b.Stats(ctx, ids...)
	for i := range far {
		near[i].BA = far[i].AB
		near[i].Path.Ready = near[i].Path.Ready && far[i].Path.Ready
	}
	return near, err
}

func (s *split) Remove(ctx context.Context, ids ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.a.Remove(ctx, ids...), s.b.Remove(ctx, ids...))
}

func (s *split) Close() error { return errors.Join(s.a.Close(), s.b.Close()) }

// A link whose halves are on two machines passes the contract of links on one.
func TestContractBetweenMachines(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN, testkit.Feature{Name: "quick", Missing: func() string { return raced }})
	linktest.Run(t, func(t *testing.T) link.Engine { return newSplit(t) }, linktest.Tolerances{Early: 2 * time.Millisecond})
}

// Full-size packets are verified to cross, and both sides know the delay of the path.
func TestPathIsMeasured(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	a, b := testkit.Namespace(t), testkit.Namespace(t)
	s := newSplit(t)
	x := spec(a.Path(), b.Path())
	if err := s.Create(t.Context(), []link.Spec{x}); err != nil {
		t.Fatal(err)
	}
	var got link.PathStats
	for deadline := time.Now().Add(time.Minute); !got.Ready; {
		stats, err := s.Stats(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("path not verified: %+v, %v", stats, err)
		}
		got = stats[0].Path
	}
	if got.Delay == 0 || got.Replies == 0 || got.Probes < got.Replies {
		t.Errorf("path to the other machine: %+v", got)
	}
}

// away is a path of 5 ms between two networks with halves of links.
func away(t *testing.T) (near, far *testkit.NS) {
	near, far = testkit.Namespace(t), testkit.Namespace(t)
	way := link.Quality{Latency: 5 * time.Millisecond}
	if err := start(t, options(t)).Create(t.Context(), []link.Spec{{
		ID: "way", A: link.End{Netns: near.Path(), Device: "way"}, B: link.End{Netns: far.Path(), Device: "way"}, AB: way, BA: way,
	}}); err != nil {
		t.Fatal(err)
	}
	near.Assign(t, "way", "10.9.0.1/24")
	far.Assign(t, "way", "10.9.0.2/24")
	return near, far
}

// The delay of the path to the other machine is subtracted from the configured latency. With a real link nothing is
// subtracted: settings are added to it.
func TestRealPath(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	for name, tt := range map[string]struct {
		real       bool
		first, set time.Duration // one way
		want       [2]time.Duration
	}{
		"emulated": {false, 20 * time.Millisecond, 30 * time.Millisecond, [2]time.Duration{40 * time.Millisecond, 60 * time.Millisecond}},
		"real":     {true, 0, 10 * time.Millisecond, [2]time.Duration{10 * time.Millisecond, 30 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := away(t)
			engines := [2]*userspace.Engine{start(t, options(t)), start(t, options(t))}
			spaces := [2]*testkit.NS{testkit.Namespace(t), testkit.Namespace(t)}
			at := [2]netip.AddrPort{netip.MustParseAddrPort("10.9.0.1:2000"), netip.MustParseAddrPort("10.9.0.2:2000")}
			for i, between := range []*testkit.NS{near, far} {
				if err := engines[i].Create(t.Context(), []link.Spec{{
					ID: "x", MTU: 1400, A: link.End{Netns: spaces[i].Path(), Device: "x"}, AB: link.Quality{Latency: tt.first},
					B: link.End{Netns: between.Path(), Path: &link.UDPPath{Local: at[i], Remote: at[1-i], Real: tt.real}},
				}}); err != nil {
					t.Fatal(err)
				}
			}
			spaces[0].Assign(t, "x", "10.8.0.1/24")
			spaces[1].Assign(t, "x", "10.8.0.2/24")
			about := func(want time.Duration) {
				t.Helper()
				var got time.Duration
				for began := time.Now(); time.Since(began) < time.Minute; {
					r, err := probe.MeasureRTT(t.Context(), []probe.Pair{{From: spaces[0], To: spaces[1]}}, 10, 10*time.Millisecond)
					if err != nil {
						t.Fatal(err)
					}
					if got = r[0].Median; len(r[0].Samples) > 0 && (got-want).Abs() < 4*time.Millisecond {
						return
					}
				}
				t.Fatalf("round trips take %v, want %v", got, want)
			}
			about(tt.want[0])
			for _, e := range engines {
				if err := e.Set(t.Context(), []link.Change{{ID: "x", AB: &link.Quality{Latency: tt.set}}}); err != nil {
					t.Fatal(err)
				}
			}
			about(tt.want[1])
			stats, err := engines[0].Stats(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			c := stats[0].Path
			if (c.Delay - 5*time.Millisecond).Abs() > 2*time.Millisecond {
				t.Errorf("%+v", c)
			}
		})
	}
}
