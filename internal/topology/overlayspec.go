package topology

import (
	"time"

	"skerry/internal/unit"
)

// OverlaySpec is how packets find their way over the links.
type OverlaySpec struct {
	// Kind is direct, the default, for the first link of each pair alone, babel for the path of the lowest
	// round-trip time, or tinc for that mesh VPN.
	Kind string `yaml:"kind" json:"kind,omitempty" jsonschema:"enum=direct,enum=babel,enum=tinc"`
	// Babel tunes babeld.
	Babel BabelSpec `yaml:"babel" json:"babel,omitzero"`
	// Tinc tunes tincd.
	Tinc TincSpec `yaml:"tinc" json:"tinc,omitzero"`
}

// Shorthand: "overlay: babel" is "overlay: {kind: babel}".
func (OverlaySpec) Shorthand() string { return "kind" }

// BabelSpec tunes babeld.
type BabelSpec struct {
	// Hello is how often a node says hello on each link: a link that died silently is
	// given up after about four of them. At least 10ms.
	Hello *unit.Duration `yaml:"hello" json:"hello,omitempty" jsonschema:"default=150ms"`
	// Update is how often a node tells all its routes; changes are told at once.
	Update *unit.Duration `yaml:"update" json:"update,omitempty" jsonschema:"default=1s"`
}

// TincSpec tunes tincd. It counts in whole seconds.
type TincSpec struct {
	// PingInterval is how long a connection may be silent before it is tried.
	PingInterval *unit.Duration `yaml:"ping_interval" json:"ping_interval,omitempty" jsonschema:"default=60s"`
	// PingTimeout is how long an answer may take, and an attempt to connect.
	PingTimeout *unit.Duration `yaml:"ping_timeout" json:"ping_timeout,omitempty" jsonschema:"default=5s"`
}

// Overlay is how packets find their way over the links of a topology. The zero value is
// direct; times that are 0 are the kind's own defaults.
type Overlay struct {
	Kind         string        `json:"kind"`
	Hello        time.Duration `json:"hello_ns,omitempty"`
	Update       time.Duration `json:"update_ns,omitempty"`
	PingInterval time.Duration `json:"ping_interval_ns,omitempty"`
	PingTimeout  time.Duration `json:"ping_timeout_ns,omitempty"`
}

// Kinds of overlays.
const (
	Direct = "direct"
	Babel  = "babel"
	Tinc   = "tinc"
)

// Routed tells whether nodes pass on packets of others.
func (o Overlay) Routed() bool { return o.Kind != "" && o.Kind != Direct }

// leastHello is what babeld counts in.
const leastHello = 10 * time.Millisecond

func (b *builder) addOverlay() {
	s := b.spec.Overlay
	o := Overlay{Kind: s.Kind}
	switch s.Kind {
	case Babel:
		o.Hello, o.Update = given(s.Babel.Hello), given(s.Babel.Update)
		for path, d := range map[string]time.Duration{"overlay.babel.hello": o.Hello, "overlay.babel.update": o.Update} {
			if d != 0 && d < leastHello {
				b.fail(path, "babeld counts in hundredths of a second", "give 10ms or more")
			}
		}
	case Tinc:
		o.PingInterval, o.PingTimeout = given(s.Tinc.PingInterval), given(s.Tinc.PingTimeout)
		for path, d := range map[string]time.Duration{"overlay.tinc.ping_interval": o.PingInterval, "overlay.tinc.ping_timeout": o.PingTimeout} {
			if d < 0 || d%time.Second != 0 {
				b.fail(path, "tinc counts in whole seconds", "give 1s, 2s ...")
			}
		}
	}
	if s.Kind != Babel && s.Babel != (BabelSpec{}) {
		b.fail("overlay.babel", "this tunes babel, which does not route here", "write overlay: {kind: babel, ...}")
	}
	if s.Kind != Tinc && s.Tinc != (TincSpec{}) {
		b.fail("overlay.tinc", "this tunes tinc, which does not route here", "write overlay: {kind: tinc, ...}")
	}
	b.t.Overlay = o
	if b.spec.Encryption == WireGuard {
		b.t.Encryption = WireGuard
	}
}

// given is a duration, 0 where none was given.
func given(d *unit.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}
