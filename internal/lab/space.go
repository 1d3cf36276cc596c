package lab

import (
	"context"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/procfs"
)

// space makes the namespaces, the links and the routes.
func (l *Lab) space(ctx context.Context, c Config, b backend) error {
	if err := mountNamespaces(l.place.namespaces()); err != nil {
		return err
	}
	total := len(l.state.Nodes)
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		l.engine, err = b.start(gctx, engineEnv{
			place: l.place, id: l.state.ID, exe: c.Exe, ephemeral: c.Ephemeral, log: c.Log,
		})
		if err != nil {
			return fmt.Errorf("start the %s link engine: %w", b.name(), err)
		}
		return l.noteEmulator()
	})
	group.Go(func() error {
		return onNodes(gctx, l.state.Nodes, count(c.Progress, "namespaces", total), func(n nodeState) error {
			return makeNamespace(n, settingsFor(c.Overlay))
		})
	})
	if err := group.Wait(); err != nil {
		return err
	}
	c.Progress("links", 0, len(l.links.Links))
	if err := l.engine.Create(ctx, l.state.specs(l.links.Links)); err != nil {
		return fmt.Errorf("make links: %w", err)
	}
	c.Progress("links", len(l.links.Links), len(l.links.Links))
	if l.state.Numbered {
		if err := l.number(ctx, c); err != nil || c.Overlay != nil {
			return err
		}
	}
	ways := routes(l.state.Nodes, l.links.Links)
	return onNodes(ctx, l.state.Nodes, count(c.Progress, "routes", total), func(n nodeState) error {
		return addRoutes(n, ways[n.Name])
	})
}

// count returns a function that counts calls and reports them.
func count(progress func(string, int, int), stage string, total int) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		progress(stage, done, total)
	}
}

// mountNamespaces makes the mount that the namespaces are mounted below. One call then
// unmounts them all, wherever copies of it went: it is shared, as `ip netns` does.
func mountNamespaces(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = share(dir)
	}
	if err != nil {
		return fmt.Errorf("mount place of namespaces: %w", err)
	}
	return nil
}

// share makes a directory a mount of its own that has peers where it is copied to.
func share(dir string) error {
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		// Where the directory's own mount is shared, as /run is by systemd, this one belongs
		// to its peers at first, and would pass every mount below on to all of them.
		err = unix.Mount("", dir, "", unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_SHARED, "")
	}
	return err
}

// noteEmulator writes the engine's process to the journal.
func (l *Lab) noteEmulator() error {
	l.state.Warnings = append(l.state.Warnings, l.engine.warnings...)
	if l.engine.pid == 0 {
		return nil
	}
	p, err := procfs.Of(l.engine.pid)
	if err != nil {
		return err
	}
	l.state.Emulator = &p
	return l.journal.began(p, emulator)
}
