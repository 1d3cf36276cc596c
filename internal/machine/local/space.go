package local

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sync/errgroup"

	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
	"skerry/internal/machine/statedir"
)

// space starts the link engine and makes the namespaces.
func (p *part) space(ctx context.Context) error {
	if err := network.MakePlace(p.place.Namespaces()); err != nil {
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

// env is what the part gives its link engine.
func (p *part) env() emulator.Env {
	return emulator.Env{
		Socket: p.place.File(statedir.Socket), LogFile: p.place.File(statedir.EngineLog),
		Tag: p.record.ID, Exe: p.machine.Exe, Owned: p.record.Owned, Log: p.machine.Log,
	}
}

// noteEmulator writes the engine's process to the journal.
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
	return p.journal.Began(process, journal.Emulator)
}

// each calls f for every node on threads that it may leave in any network namespace, and
// reports how many are done.
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
