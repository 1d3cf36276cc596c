package metadata

import (
	"context"
	"errors"
	"fmt"
	"path"

	vocab "skerry/systems/metadata"

	"skerry/internal/load"
	"skerry/internal/load/mdtest"
)

// ErrAreas says that a client was not told of the tree's areas.
var ErrAreas = errors.New("the tree's areas are not known")

// Areas implements load.TreeClient.
func (w *worker) Areas() int { return len(w.areas) }

// Tree implements load.TreeClient.
func (w *worker) Tree(ctx context.Context, op *mdtest.Op) error {
	if len(w.areas) == 0 {
		return load.Failed("areas", "", fmt.Errorf("%w: set %s", ErrAreas, PropAreas))
	}
	top := ownTop
	if op.Shared {
		top = sharedTop
	}
	dir := path.Join(top, w.areas[op.Area%len(w.areas)], op.Dir)
	c := vocab.Command{Path: path.Join(dir, op.Name)}
	switch op.Kind {
	case mdtest.List:
		c.Op, c.Limit = vocab.List, op.Page
	case mdtest.Stat:
		c.Op = vocab.Stat
	case mdtest.Create:
		c.Op = vocab.Create
	case mdtest.Mkdir:
		c.Op, c.Parents = vocab.Mkdir, op.Parents
	case mdtest.Rename:
		c.Op, c.To = vocab.Move, path.Join(dir, op.To)
	case mdtest.Remove:
		c.Op = vocab.Remove
	case mdtest.Rmdir:
		c.Op = vocab.Rmdir
	}
	commands := []vocab.Command{c}
	if op.Kind == mdtest.Create && op.Parents {
		commands = []vocab.Command{{Op: vocab.Mkdir, Path: dir, Parents: true}, c}
	}
	results, err := w.runCommands(ctx, commands)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil && !(op.Parents && errors.Is(r.Err, vocab.ErrExists)) { // loaded before
			return classifyError(r.Err)
		}
	}
	return nil
}
