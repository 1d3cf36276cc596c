package multihost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/lab"
	"skerry/internal/machine/files"
)

// ErrMissing means that a machine lacks a program that cannot be copied there.
var ErrMissing = errors.New("missing program")

// ConfigureLab configures a lab to run on the machines, and to install what its nodes need: the programs of
// overlay and service, and others. lost names the excluded machines.
func (m *Machines) ConfigureLab(
	ctx context.Context, c *lab.Config, terms LabOptions, progress func(string),
	others ...database.Installation,
) (lost, err error) {
	if err := lab.CheckMultiMachine(c.Topology, c.Engine); err != nil {
		return nil, err
	}
	on, lost, err := m.PlaceNodes(ctx, c.Topology, terms.Place)
	if err == nil && terms.Between == Plain {
		err = on.DisableEncryption()
	}
	if err != nil {
		return nil, err
	}
	if c.RealLinks = terms.Links == Real; c.RealLinks && on.IsSingle() {
		return nil, lab.ErrOneMachine
	}
	routes, err := lab.FindOverlayProgram(ctx, c.Topology.Overlay)
	if err != nil {
		return nil, err
	}
	c.Machine = on
	c.PrepareNodes = func(ctx context.Context, l *lab.Lab) error {
		for _, in := range append(others, asInstallation(routes), asInstallation(c.Balancer)) {
			if err := m.installOn(ctx, l, in, progress); err != nil {
				return err
			}
		}
		return nil
	}
	return lost, nil
}

func asInstallation(in install.Installation) database.Installation {
	return database.Installation{Database: in.Database, Version: in.Version, Dir: in.Dir, Programs: in.Programs}
}

// installOn copies an installation to every machine of a lab that lacks it, to the same path because
// programs contain paths. Programs are copied last, so that their presence means a complete copy.
func (m *Machines) installOn(ctx context.Context, l *lab.Lab, in database.Installation, progress func(string)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	places := l.NodeMachines()
	done := map[string]bool{}
	g, gctx := errgroup.WithContext(ctx)
	for _, h := range l.Hosts() {
		at := places[h.Name()]
		key := at + "\x00" + in.Dir + "\x00" + in.Version + "\x00" + in.Database
		if len(in.Programs) == 0 || done[key] || m.installed[key] {
			continue
		}
		done[key] = true
		g.Go(func() error {
			if err := copyInstallation(gctx, h.Files(), in, func() { progress("copying " + in.Database + " to " + at) }); err != nil {
				return fmt.Errorf("%s: install %s %s: %w", at, in.Database, in.Version, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	maps.Copy(m.installed, done)
	return nil
}

func copyInstallation(ctx context.Context, on files.System, in database.Installation, begin func()) error {
	var last []string // missing programs
	for _, path := range slices.Sorted(maps.Values(in.Programs)) {
		here, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("read program: %w", err)
		}
		there, err := on.Stat(ctx, path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && there.Size != here.Size() {
			last = append(last, path)
		} else if err != nil {
			return err
		}
	}
	if len(last) == 0 {
		return nil
	}
	if in.Dir == "" {
		return advice.With(
			fmt.Errorf("%w: %s", ErrMissing, last[0]),
			"install it there, or here with `skerry db install %s`, which skerry then copies", in.Database,
		)
	}
	begin()
	if err := filepath.WalkDir(in.Dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return on.MakeDir(ctx, path)
		case slices.Contains(last, path):
			return nil
		}
		return copyFile(ctx, on, path)
	}); err != nil {
		return err
	}
	for _, path := range last {
		if err := on.MakeDir(ctx, filepath.Dir(path)); err != nil {
			return err
		}
		if err := copyFile(ctx, on, path); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file or the target of a link. It skips broken links.
func copyFile(ctx context.Context, on files.System, path string) error {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return on.Write(ctx, path, st.Mode().Perm(), f)
}
