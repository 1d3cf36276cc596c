package hydra

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"skerry/systems/hydra/cloudsql"
)

// An entry that a database cannot take - a trigger, a limit of the server's, a full disk - must not keep
// those before it back, and must be named: a batch that fails on a database that answers is
// halved until the entry stands alone. There the cloud's applier stops and tries again now and
// then; the member says which entry it is, other clouds answer for this one, and it goes on by
// itself when the database takes it.

// stuck is what is known of an entry that the database does not take.
type stuck struct {
	batch int           // the most entries that are applied at once, 0: maxEntries
	index atomic.Uint64 // of the entry, 0 for none
}

// most is how many entries are applied at once.
func (s *stuck) most() int {
	if s.batch == 0 {
		return maxEntries
	}
	return s.batch
}

// through notes that a batch was applied.
func (s *stuck) through(entries int) {
	s.index.Store(0)
	if s.batch != 0 && entries == s.batch {
		if s.batch *= 2; s.batch >= maxEntries {
			s.batch = 0
		}
	}
}

// errNarrower says that a part of a batch is to be tried.
var errNarrower = errors.New("the batch is tried in parts")

// narrow finds the entry that a batch fails at.
func (n *Node) narrow(ctx context.Context, batch []cloudsql.Entry, err error) error {
	for _, other := range []error{cloudsql.ErrMoved, cloudsql.ErrBack, cloudsql.ErrLog, cloudsql.ErrSilent} {
		if errors.Is(err, other) {
			return err
		}
	}
	if ctx.Err() != nil {
		return err
	}
	if _, down := n.store.Progress(ctx); down != nil {
		return err // it is not the entry
	}
	if len(batch) > 1 {
		n.stuck.batch = len(batch) / 2
		return errNarrower
	}
	n.stuck.index.Store(batch[0].Index)
	return fmt.Errorf("entry %d cannot be applied, and so none after it: %w", batch[0].Index, err)
}
