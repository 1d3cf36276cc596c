package tinc

import (
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/install"
	"skerry/internal/lab/overlay"
)

// Options tune tincd. It counts in whole seconds; the defaults are its own.
type Options struct {
	// PingInterval is how long a connection may be silent before it is tried.
	PingInterval unit.Duration `yaml:"ping_interval" jsonschema:"default=60s"`
	// PingTimeout is how long an answer may take, and an attempt to connect.
	PingTimeout unit.Duration `yaml:"ping_timeout" jsonschema:"default=5s"`
}

var _ overlay.Options = (*Options)(nil)

// Mistakes implements overlay.Options.
func (o *Options) Mistakes() (ps strict.Problems) {
	for _, i := range []struct {
		key string
		d   unit.Duration
	}{{"ping_interval", o.PingInterval}, {"ping_timeout", o.PingTimeout}} {
		if i.d <= 0 || time.Duration(i.d)%time.Second != 0 {
			ps = append(ps, strict.Problem{Path: i.key, Message: "tinc counts in whole seconds", Hint: "give 1s, 2s ..."})
		}
	}
	return ps
}

// New implements overlay.Options.
func (o *Options) New(in install.Installation) overlay.Overlay {
	return &Tinc{program: in.Programs["tincd"], env: in.Env, options: *o}
}
