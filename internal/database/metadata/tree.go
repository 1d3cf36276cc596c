package metadata

import (
	"context"
	"errors"
	"fmt"
	"path"

	protocol "skerry/internal/metadata"

	"skerry/internal/load"
	"skerry/internal/mdtest"
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
	c := protocol.Command{Path: path.Join(dir, op.Name)}
	switch op.Kind {
	case mdtest.List:
		c.Op, c.Limit = protocol.List, op.Page
	case mdtest.Stat:
		c.Op = protocol.Stat
	case mdtest.Create:
		c.Op = protocol.Create
	case mdtest.Mkdir:
		c.Op, c.Parents = protocol.Mkdir, op.Parents
	case mdtest.Rename:
		c.Op, c.To = protocol.Move, path.Join(dir, op.To)
	case mdtest.Remove:
		c.Op = protocol.Remove
	case mdtest.Rmdir:
		c.Op = protocol.Rmdir
	}
	commands := []protocol.Command{c}
	if op.Kind == mdtest.Create && op.Parents {
		commands = []protocol.Command{{Op: protocol.Mkdir, Path: dir, Parents: true}, c}
	}
	results, err := w.do(ctx, commands)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil && !(op.Parents && errors.Is(r.Err, protocol.ErrExists)) { // loaded before
			return outcome(r.Err)
		}
	}
	return nil
}
