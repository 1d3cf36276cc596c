package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"skerry/internal/advice"
	"skerry/internal/cgroup"
	"skerry/internal/host"
)

// Attach opens a lab that another process made. A rootless lab is opened from within
// its user namespace.
func Attach(ctx context.Context, stateDir, name string) (*Lab, error) {
	return attach(ctx, stateDir, name, backends())
}

func attach(ctx context.Context, stateDir, name string, from []backend) (_ *Lab, err error) {
	l, err := load(stateDir, name)
	if err != nil {
		return nil, err
	}
	b, err := find(l.state.Engine, from)
	if err != nil {
		return nil, err
	}
	if l.journal, err = openJournal(l.place); err != nil {
		return nil, err
	}
	l.engine, err = b.connect(ctx, engineEnv{place: l.place, id: l.state.ID, log: l.log}, l.state.specs(l.links.Links))
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
		return nil, errors.Join(advice.With(err, "end it with `skerry lab down %s`", name), l.journal.close())
	}
	return l, l.openNodes()
}

// load reads what is said about a lab that is up.
func load(stateDir, name string) (*Lab, error) {
	s, err := openStore(stateDir)
	if err != nil {
		return nil, err
	}
	l := &Lab{place: s.lab(name), log: slog.New(slog.DiscardHandler)}
	if l.state, err = readState(l.place); errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(s, name)
	}
	if err == nil && l.state.Version != stateVersion {
		err = fmt.Errorf("lab %s was made by another version of skerry", name)
	}
	if err == nil {
		err = readJSON(l.place.file(linksFile), &l.links)
	}
	return l, err
}

func notFound(s store, name string) error {
	err := ErrNotFound
	if name != "" {
		err = fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	names, listErr := s.names()
	if listErr != nil || len(names) == 0 {
		return advice.With(err, "make one with `skerry lab up azure8`")
	}
	return advice.With(err, "see `skerry lab status` for those that are there")
}

// OpenNode opens a node of a lab that another process made, to run something on it by
// Exec. A rootless lab's is opened from within its user namespace.
func OpenNode(stateDir, name, node string) (*host.Node, error) {
	l, err := load(stateDir, name)
	if err != nil {
		return nil, err
	}
	l.journal = &journal{}
	if err := l.openNodes(); err != nil {
		return nil, err
	}
	return l.Node(node)
}

// OpenMember is OpenNode of where the database runs on a node: in its container, where the
// lab has a service that makes some.
func OpenMember(stateDir, name, node string) (interface{ Exec(host.Command) error }, error) {
	l, err := load(stateDir, name)
	if err != nil {
		return nil, err
	}
	l.journal = &journal{}
	if err := l.openNodes(); err != nil {
		return nil, err
	}
	if c := l.containers[node]; c != nil {
		return c, nil
	}
	return l.Node(node)
}

func (l *Lab) openNodes() error {
	if !l.state.Groups {
		l.attachNodes(nil)
		return nil
	}
	tree, err := cgroup.Open()
	if err != nil {
		return err
	}
	l.attachNodes(tree)
	return nil
}

// Remove ends a lab that another process made, damaged ones included.
func Remove(ctx context.Context, stateDir, name string) error {
	s, err := openStore(stateDir)
	if err != nil {
		return err
	}
	p := s.lab(name)
	lock, err := p.seize(ctx)
	r := inspect(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notFound(s, name)
	case errors.Is(err, errLocked):
		return r.inUse()
	case err != nil:
		return err
	}
	l := &Lab{place: p, owner: lock, journal: &journal{}, state: state{Name: name, ID: r.id}}
	if r.state != nil {
		l.state = *r.state
	}
	if err := l.Down(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

func (r remains) inUse() error {
	err := fmt.Errorf("%w: %s", ErrInUse, r.place.name)
	if r.plan == nil {
		return err
	}
	return advice.With(err, "stop process %d first", r.plan.Owner.PID)
}
