// Package babel routes with babeld: the Babel protocol (RFC 8966) with its extension for
// delay-based routing (draft-ietf-babel-rtt-extension), by which a link costs what its
// round-trip time is, and which so prefers short ways from the start.
package babel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/host"
	"skerry/internal/install"
	"skerry/internal/overlay"
)

// Name is how topologies call it.
const Name = "babel"

// Recipe installs Debian's babeld.
var Recipe = install.Recipe{
	Name:        "babeld",
	Summary:     "babeld, which routes for overlay: babel",
	Packages:    []string{"babeld", "libb2-1", "libgomp1"},
	Programs:    []string{"babeld"},
	VersionArgs: []string{"-V"},
	Version: func(output string) string {
		if m := versionPattern.FindStringSubmatch(output); m != nil {
			return m[1]
		}
		return ""
	},
}

// versionPattern finds the version in "babeld-1.12.1".
var versionPattern = regexp.MustCompile(`babeld-([0-9][^ \n]*)`)

// readyTimeout bounds how long routes may take to spread at the start: a second or so
// between eight nodes, much longer between many on a machine of few cores.
const readyTimeout = 2 * time.Minute

// Babel is the overlay.
type Babel struct {
	program string
	env     []string
	options Options
}

// New returns the overlay with an installation of Recipe.
func New(in install.Installation, o Options) *Babel {
	return &Babel{program: in.Programs["babeld"], env: in.Env, options: o}
}

var _ overlay.Overlay = (*Babel)(nil)

// Name implements overlay.Overlay.
func (*Babel) Name() string { return Name }

// Needs implements overlay.Overlay.
func (*Babel) Needs() overlay.Needs {
	return overlay.Needs{IPv6: true}
}

// Start implements overlay.Overlay.
func (b *Babel) Start(ctx context.Context, n overlay.Net) (overlay.Running, error) {
	r := &running{Keeper: overlay.NewKeeper(n.Log), nodes: n.Nodes}
	var g errgroup.Group
	span := span(n.Links)
	for _, h := range n.Nodes {
		var links []overlay.Link
		for _, l := range n.Links {
			if l.A == h.Name() || l.B == h.Name() {
				links = append(links, l)
			}
		}
		g.Go(func() error { return b.start(ctx, r.Keeper, h, links, span) })
	}
	err := g.Wait()
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("no routes after %v", readyTimeout))
		defer cancel()
		err = overlay.Await(ctx, r.Ready)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting babel: %w%s", err, r.LastWords()), r.Close())
	}
	return r, nil
}

func (b *Babel) start(ctx context.Context, k *overlay.Keeper, h host.Host, links []overlay.Link, span time.Duration) error {
	dir := filepath.Join(h.Dir(), "babel")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of babeld on %s: %w", h.Name(), err)
	}
	file := filepath.Join(dir, "babeld.conf")
	if err := os.WriteFile(file, []byte(config(h.Addr(), links, span, b.options)), 0o644); err != nil {
		return fmt.Errorf("configuring babeld on %s: %w", h.Name(), err)
	}
	return k.Start(ctx, h, host.Command{
		Name: "babeld", Path: b.program, Env: b.env, Dir: dir, Log: filepath.Join(dir, "babeld.log"),
		// It refuses to start beside a pid file, which one that was killed leaves.
		Args: []string{"-c", file, "-S", filepath.Join(dir, "state"), "-I", ""},
	})
}

type running struct {
	*overlay.Keeper
	nodes []host.Host
}

// Ready implements overlay.Running.
func (r *running) Ready(context.Context) error { return overlay.Routed(r.nodes) }
