package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/advice"
	"skerry/internal/procfs"
)

// Up makes a lab. When it fails or ctx ends, everything made is undone.
func Up(ctx context.Context, c Config) (*Lab, error) {
	c.setDefaults()
	l, err := up(ctx, c)
	// The emulator's errors come as text.
	if err != nil && (errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), unix.ENOSPC.Error())) {
		err = advice.With(err, "the disk is full: free some space, or give other directories by SKERRY_STATE and SKERRY_DATA")
	}
	return l, err
}

func up(ctx context.Context, c Config) (*Lab, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	links, err := c.links()
	if err != nil {
		return nil, err
	}
	b, why, err := choose(c.Engine, c.backends)
	if err != nil {
		return nil, err
	}
	l := &Lab{log: c.Log, links: links}
	l.state = state{
		Version: stateVersion, Name: c.Name, Created: time.Now().UTC(), Ephemeral: c.Ephemeral,
		Engine: b.name(), Why: why, Topology: c.Topology, Seed: c.Seed, Numbered: numbered(c),
	}
	if err := l.claim(ctx, c); err != nil {
		return nil, err
	}
	if err := l.build(ctx, c, b); err != nil {
		l.log.Debug("undo", "lab", c.Name, "because", err)
		return nil, errors.Join(err, l.Down(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// claim takes the lab's name and writes its journal. When it fails nothing is left.
func (l *Lab) claim(ctx context.Context, c Config) error {
	s, err := openStore(c.StateDir)
	if err != nil {
		return err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer s.release(lock)
	l.place = s.lab(c.Name)
	if err := vacate(ctx, l.place); err != nil {
		return err
	}
	if err := os.Mkdir(l.place.dir(), 0o700); err != nil {
		return fmt.Errorf("make directory of lab: %w", err)
	}
	err = l.found(ctx, c)
	if err != nil {
		err = errors.Join(err, l.place.removeFiles())
		if l.owner != nil {
			l.owner.Close()
		}
	}
	return err
}

// vacate clears what is left of a lab of that name; ErrExists when it is up.
func vacate(ctx context.Context, p place) error {
	lock, err := p.seize(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errLocked):
		return advice.With(fmt.Errorf("%w: %s", ErrExists, p.name), "it belongs to a running command; choose another name")
	case err != nil:
		return err
	}
	defer lock.Close()
	r := inspect(p)
	if r.alive() {
		return advice.With(fmt.Errorf("%w: %s", ErrExists, p.name), "take it down with `skerry lab down %s`, or choose another name", p.name)
	}
	if err := r.doubt(); err != nil {
		return err
	}
	return r.clear(ctx)
}

// found locks the lab's directory, gives the lab its ID and plans it.
func (l *Lab) found(ctx context.Context, c Config) (err error) {
	if l.owner, err = lockDir(ctx, l.place.dir(), true); err != nil {
		return err
	}
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		return fmt.Errorf("make ID of lab: %w", err)
	}
	l.state.ID = c.Name + "-" + hex.EncodeToString(random)
	if err := os.Symlink(l.state.ID, l.place.file(idFile)); err != nil {
		return fmt.Errorf("keep ID of lab: %w", err)
	}
	if l.state.Boot, err = procfs.BootID(); err != nil {
		return err
	}
	if l.state.Owner, err = procfs.Self(); err != nil {
		return err
	}
	data, err := filepath.Abs(c.DataDir)
	if err != nil {
		return err
	}
	l.state.Data = filepath.Join(data, l.state.ID)
	l.journal, err = createJournal(l.place, plan{
		ID: l.state.ID, Boot: l.state.Boot, Owner: l.state.Owner, Data: l.state.Data, MadeNames: ownsShownDir(),
	})
	return err
}
