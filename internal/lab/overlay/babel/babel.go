// Package babel routes with babeld: the Babel protocol (RFC 8966) with its extension for
// delay-based routing (draft-ietf-babel-rtt-extension), by which a link costs what its
// round-trip time is, and which so prefers short ways from the start.
package babel

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/install"
	"skerry/internal/lab/overlay"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Name is how topologies call it.
const Name = "babel"

// Recipe installs Debian's babeld.
var Recipe = install.Recipe{
	Name:     "babeld",
	Summary:  "babeld, which routes for overlay: babel",
	Wanted:   install.ByTests,
	Packages: []string{"babeld/sid"}, Closure: true,
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

// readyTimeout bounds how long routes may take to spread at a start: a second or so
// between eight nodes, much longer between many on a machine of few cores.
const readyTimeout = 2 * time.Minute

// Babel is the overlay.
type Babel struct {
	program string
	env     []string
	options Options
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
	r := &running{babel: b, Keeper: overlay.NewKeeper(n.Log), net: n, span: span(n.Links)}
	var g errgroup.Group
	for _, h := range n.Nodes {
		g.Go(func() error {
			c, err := b.configure(ctx, h, n.Links, r.span)
			if err != nil {
				return err
			}
			return r.Keeper.Start(ctx, h, c)
		})
	}
	err := g.Wait()
	if err == nil {
		err = r.routed(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting babel: %w%s", err, r.LastWords()), r.Close())
	}
	return r, nil
}

// configure writes the configuration of a node, and returns what to start there.
func (b *Babel) configure(ctx context.Context, h host.Host, all []overlay.Link, span time.Duration) (host.Command, error) {
	var links []overlay.Link
	for _, l := range all {
		if l.A == h.Name() || l.B == h.Name() {
			links = append(links, l)
		}
	}
	dir := filepath.Join(h.Dir(), "babel")
	if err := h.Files().MakeDir(ctx, dir); err != nil {
		return host.Command{}, fmt.Errorf("making the directory of babeld on %s: %w", h.Name(), err)
	}
	file := filepath.Join(dir, "babeld.conf")
	if err := files.WriteText(ctx, h.Files(), file, config(h.Addr(), links, span, b.options)); err != nil {
		return host.Command{}, fmt.Errorf("configuring babeld on %s: %w", h.Name(), err)
	}
	return host.Command{
		Name: "babeld", Path: b.program, Env: b.env, Dir: dir, Log: filepath.Join(dir, "babeld.log"),
		// It refuses to start beside a pid file, which one that was killed leaves.
		Args: []string{"-c", file, "-S", filepath.Join(dir, "state"), "-I", ""},
	}, nil
}

type running struct {
	*overlay.Keeper
	babel *Babel
	net   overlay.Net

	mu   sync.Mutex
	span time.Duration // that the daemons go by
}

// Follow implements overlay.Running. What a link costs is set when babeld starts: where the
// span is another now, the daemons are started anew, and for about a second there are no routes.
func (r *running) Follow(ctx context.Context, links []overlay.Link) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := span(links)
	if now == r.span {
		return nil
	}
	for _, h := range r.net.Nodes {
		if _, err := r.babel.configure(ctx, h, links, now); err != nil {
			return err
		}
	}
	r.span = now
	err := r.Renew(ctx)
	if err == nil {
		err = r.routed(ctx)
	}
	if err != nil {
		return fmt.Errorf("making babel go by other distances: %w%s", err, r.LastWords())
	}
	return nil
}

// routed waits until there are routes from everywhere to everywhere.
func (r *running) routed(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("no routes after %v", readyTimeout))
	defer cancel()
	return overlay.Await(ctx, r.Ready)
}

// Ready implements overlay.Running.
func (r *running) Ready(ctx context.Context) error { return r.net.Routed(ctx) }
