package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
)

// space makes the namespaces and starts the link engine.
func (p *part) space(ctx context.Context) error {
	if err := network.MakeMountPoint(p.place.Namespaces()); err != nil {
		return err
	}
	kind, err := emulator.Find(p.record.Engine, p.machine.Engines)
	if err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if p.engine, err = kind.Start(gctx, p.env()); err != nil {
			return fmt.Errorf("start the %s link engine: %w", kind.Name(), err)
		}
		return p.noteEmulator()
	})
	settings := network.Settings(p.ask.Forward, p.ask.IPv6, p.ask.TCP)
	group.Go(func() error {
		return p.each(gctx, "namespaces", func(n node) error {
			if n.whole() {
				return nil
			}
			addr, err := netip.ParseAddr(n.Addr)
			if err != nil {
				return err
			}
			return network.Make(n.Netns, addr, settings)
		})
	})
	if err := group.Wait(); err != nil || len(p.record.Nodes) == 0 {
		return err
	}
	got, warnings, err := network.ReadSettings(p.record.Nodes[0].Netns, settings)
	p.record.Settings = got
	if !p.ask.Whole { // whose settings are the machine's
		p.record.Warnings = append(p.record.Warnings, warnings...)
	}
	return err
}

func (p *part) env() emulator.Env {
	return emulator.Env{
		Socket: p.place.Path(journal.SocketFile), LogFile: p.place.Path(journal.EngineLog),
		Tag: p.record.ID, Exe: p.machine.Exe, Owned: p.record.Owned, Log: p.machine.Log,
	}
}

// noteEmulator adds the engine's process to the journal.
func (p *part) noteEmulator() error {
	p.record.Warnings = append(p.record.Warnings, p.engine.Warnings...)
	if p.engine.PID == 0 {
		return nil
	}
	process, err := procfs.FindProcess(p.engine.PID)
	if err != nil {
		return err
	}
	p.record.Emulator = &process
	return p.journal.AppendProcess(process, journal.Emulator)
}

// each calls f for every node, on threads that f may leave in any network namespace, and reports progress.
func (p *part) each(ctx context.Context, stage string, f func(node) error) error {
	byName := make(map[string]node, len(p.record.Nodes))
	for _, n := range p.record.Nodes {
		byName[n.Name] = n
	}
	var mu sync.Mutex
	done := 0
	return network.Each(ctx, p.record.names(), func(name string) error {
		if err := f(byName[name]); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		p.machine.Progress(stage, done, len(byName))
		return nil
	})
}

// shownDir is the directory of `ip netns`.
const shownDir = "/run/netns"

// show makes the namespaces visible to `ip netns`, if permitted.
func (p *part) show() error {
	nodes := p.record.Nodes
	for i, n := range nodes {
		if n.whole() {
			continue
		}
		name := "skerry-" + p.record.Name + "-" + n.Name
		err := showAs(name, n.Netns)
		if errors.Is(err, fs.ErrExist) { // a lab of this name in another state directory
			name = "skerry-" + p.record.ID + "-" + n.Name
			err = showAs(name, n.Netns)
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			for k := range nodes {
				nodes[k].Shown = ""
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("show namespace: %w", err)
		}
		nodes[i].Shown = name
	}
	return nil
}

func showAs(name, path string) (err error) {
	for range journal.MakeAttempts {
		if err = os.Symlink(path, filepath.Join(shownDir, name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// The directory is missing, or another command removed it just now.
		if err = os.Mkdir(shownDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return err
}

// hide removes the names that refer to namespaces below dir, and shownDir if a lab made it and it is empty.
func hide(dir string, made bool) error {
	entries, err := os.ReadDir(shownDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list shown namespaces: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || !strings.HasPrefix(e.Name(), "skerry-") {
			continue
		}
		name := filepath.Join(shownDir, e.Name())
		target, err := os.Readlink(name)
		if err != nil || !strings.HasPrefix(target, dir+"/") {
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("hide namespace: %w", err))
		}
	}
	if made {
		_ = os.Remove(shownDir) // others may use it
	}
	return errors.Join(errs...)
}

// ownsShownDir reports whether shownDir is, or will be, used by labs only.
func ownsShownDir() bool {
	entries, err := os.ReadDir(shownDir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || !strings.HasPrefix(e.Name(), "skerry-") {
			return false
		}
	}
	return len(entries) > 0
}
