package lab

import (
	"context"
	"errors"
	"log/slog"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
	"skerry/internal/machine/local"
)

// localMachine is this machine with a state directory.
func localMachine(stateDir string) (machine.Machine, error) {
	return local.New(local.Config{State: stateDir})
}

// AttachOn opens a lab of another process. A rootless lab must be opened from within its user namespace.
func AttachOn(ctx context.Context, m machine.Machine, name string) (*Lab, error) {
	l, err := openLab(ctx, m, name)
	if err != nil {
		return nil, err
	}
	if err := l.part.AdoptLinks(ctx, l.specs()); err != nil {
		return nil, err
	}
	if err := l.attachNodes(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// openLab reads the state of a running lab.
func openLab(ctx context.Context, m machine.Machine, name string) (l *Lab, err error) {
	l = &Lab{log: slog.New(slog.DiscardHandler)}
	if l.part, err = m.Open(ctx, name); err != nil {
		return nil, adviseNotFound(ctx, m, err)
	}
	f := l.part.Facts()
	l.owned = f.Owned
	if err := parseState(f.Lab, &l.state); err != nil {
		return nil, err
	}
	return l, l.loadLinks(ctx)
}

// adviseNotFound adds advice to ErrNotFound.
func adviseNotFound(ctx context.Context, m machine.Machine, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if found, listErr := m.List(ctx); listErr != nil || len(found) == 0 {
		return advice.With(err, "create one with `skerry lab up azure8`")
	}
	return advice.With(err, "list the labs with `skerry lab status`")
}

// OpenNode opens a node of another process's lab, to run a program on it. A rootless lab must be opened from within its
// user namespace.
func OpenNode(ctx context.Context, stateDir, name, node string) (machine.LocalHost, error) {
	l, err := loadNodes(ctx, stateDir, name)
	if err != nil {
		return nil, err
	}
	return l.Node(node)
}

// OpenMember is OpenNode for the environment of the database: its container, if the lab's service has containers.
func OpenMember(ctx context.Context, stateDir, name, node string) (machine.LocalHost, error) {
	l, err := loadNodes(ctx, stateDir, name)
	if err != nil {
		return nil, err
	}
	h, err := l.Member(node)
	if err != nil {
		return nil, err
	}
	return machine.AsLocalHost(h)
}

func loadNodes(ctx context.Context, stateDir, name string) (*Lab, error) {
	m, err := localMachine(stateDir)
	if err != nil {
		return nil, err
	}
	l, err := openLab(ctx, m, name)
	if err != nil {
		return nil, err
	}
	return l, l.attachNodes()
}

// Remove ends a lab of another process, even if it is damaged.
func Remove(ctx context.Context, stateDir, name string) error {
	m, err := localMachine(stateDir)
	if err != nil {
		return err
	}
	if err := m.Remove(ctx, name); err != nil {
		return adviseNotFound(ctx, m, err)
	}
	return nil
}

// Sweep clears the labs whose owner died, and returns their names. It needs no disk space, and touches only what labs
// created.
func Sweep(ctx context.Context, stateDir string) ([]string, error) {
	m, err := localMachine(stateDir)
	if err != nil {
		return nil, err
	}
	return m.Sweep(ctx)
}
