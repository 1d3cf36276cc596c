package lab

import (
	"errors"
	"testing"

	"skerry/internal/lab/overlay/babel"
	"skerry/internal/machine/local"
	"skerry/internal/topology"
	"skerry/test/machinetest"
	"skerry/test/testkit"
)

// The requests of a lab to its machine are plain data: a lab comes up, works, changes and ends if all requests and
// results pass through JSON.
func TestPlainData(t *testing.T) {
	for name, prepare := range map[string]func(*Config){
		"a service behind virtual addresses": func(*Config) {},
		"babel over wireguard": func(c *Config) {
			testkit.Need(t, testkit.Installed(babel.Recipe))
			c.Topology.Encryption, c.Topology.Overlay = topology.WireGuard, topology.Overlay{Kind: babel.Name}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := withService(t, "message", serviceOf(topology.ServiceIP, topology.Own))
			prepare(&c)
			var err error
			if c.Overlay, err = NewOverlay(t.Context(), c.Topology.Overlay); err != nil {
				t.Fatal(err)
			}
			m, err := local.New(local.Config{State: c.StateDir, Data: c.DataDir, Exe: c.Exe})
			if err != nil {
				t.Fatal(err)
			}
			c.Machine = machinetest.Sent(t, m)
			l := mustUp(t, c)
			a, errA := l.Member("n0")
			b, errB := l.Member("n2")
			if err := errors.Join(errA, errB, l.Scale(t.Context(), 2)); err != nil {
				t.Fatal(err)
			}
			startGreeter(t, b)
			if who, err := exchange(a, addressOf(t, l, "n2"), nil); err != nil || who != "n2" {
				t.Errorf("n2's own address leads to %q, %v", who, err)
			}
			if _, err := l.Stats(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
