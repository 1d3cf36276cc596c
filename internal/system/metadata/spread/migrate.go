package spread

import (
	"context"
	"time"

	"skerry/internal/system/metadata"
)

// migrate moves a directory with all below it to another server while it is used:
//
//	watch    its server notes what is changed in it from then on
//	copy     what is in it, aside on the new server
//	catch up what was changed meanwhile, until that is little
//	lock     changes wait
//	the last of what was changed; then the copy takes its place, at one moment
//
// Subtrees of other servers in it stay where they are. It is read all the while.
func (r *Router) migrate(ctx context.Context, c metadata.Command) metadata.Result {
	result := r.transact(ctx, c.Identity, func(ctx context.Context, t *transaction) metadata.Result {
		m := migration{transaction: t, target: c.Owner, aside: metadata.Join(metadata.Incoming, t.name), pending: make(map[string]bool)}
		result := m.run(context.WithoutCancel(ctx), c)
		if result.Err != nil && !t.undecided {
			// Nothing leads there. Where it stays, nobody sees it.
			_ = r.askOne(ctx, m.target, removalOf(m.aside))
		}
		return result
	})
	r.known.forget(place{top: c.Path})
	return result
}

// migration is a subtree on its way.
type migration struct {
	*transaction
	target  string // the server that it moves to
	aside   string // where it is made there
	source  place  // the directory, and the server that has it, which is the coordinator
	locked  bool   // the directory is: nothing in it changes
	renewed time.Time
	pending map[string]bool // paths of the source that were changed since they were copied; those below too
	touches []making        // of directories, whose times change while they are filled
}

func (m *migration) run(ctx context.Context, c metadata.Command) metadata.Result {
	above := m.r.parent(c.Path)
	path := above.in(c.Path)
	at := m.r.askOne(ctx, above.server, metadata.Command{Op: metadata.List, Path: path, Limit: 1, MaxDepth: -1})
	sub := metadata.Subtree{Server: m.target, ID: m.r.token()}
	m.source = place{top: c.Path, server: above.server, base: path}
	owner := "" // of the directory, where it is virtual
	if e := met(metadata.Command{Op: metadata.List, Path: path}, at); e != nil && e.At == path {
		old, ok := metadata.ParseSubtree(e.Owner)
		if !ok {
			return elsewhere(c.Path, e.Owner)
		}
		sub, owner = old.Next(), e.Owner
		sub.Server = m.target
		m.source = place{top: c.Path, server: old.Server, base: old.Base()}
	} else if at.Err != nil {
		return metadata.Result{Err: m.r.lost(above, c.Path, at.Err)}
	}
	if m.source.server == m.target {
		return metadata.Result{} // it is there already
	}
	top, err := m.bring(ctx)
	if err != nil {
		return metadata.Result{Err: err}
	}
	arrive := []metadata.Command{
		{Op: metadata.Mkdir, Path: metadata.Subtrees, Parents: true, MaxDepth: -1},
		{Op: metadata.Move, Path: m.aside, To: sub.Base(), Across: true, MaxDepth: -1},
	}
	m.transaction.run(removalOf(m.source.base))
	if made := m.prepare(ctx, m.target, m.aside, "", arrive...); made.Err != nil {
		return made
	}
	if owner == "" {
		made := metadata.Command{Op: metadata.Mkdir, Path: path, Mode: top.Mode, MaxDepth: -1}
		m.transaction.run(made, delegated(path, sub))
	} else {
		switched := metadata.Command{Op: metadata.Delegate, Path: path, To: owner, Owner: sub.Owner(), MaxDepth: -1}
		if made := m.prepare(ctx, above.server, path, "", switched); made.Err != nil {
			return metadata.Result{Err: m.r.lost(above, c.Path, made.Err)}
		}
	}
	return m.commit(ctx)
}

// bring copies the directory, and returns with it locked and the copy whole.
func (m *migration) bring(ctx context.Context) (top metadata.Entry, err error) {
	if top, err = m.watch(ctx); err != nil {
		return top, err
	}
	if err = m.copy(ctx, top); err == nil {
		err = m.catchUp(ctx)
	}
	if err != nil {
		return top, err
	}
	m.locked = true
	if top, err = m.lock(ctx); err != nil {
		return top, err
	}
	// A lock that was lost for a while, and taken again, is told by what was changed then.
	for {
		if err = m.drain(ctx); err != nil || len(m.pending) == 0 {
			return top, err
		}
		if err = m.changes(ctx); err != nil {
			return top, err
		}
	}
}

// watch has the server note what is changed in the directory.
func (m *migration) watch(ctx context.Context) (metadata.Entry, error) {
	m.coordinator, m.renewed = m.source.server, time.Now()
	step := metadata.Step{Verb: metadata.Watch, Txn: m.name, Lease: int64(watchLeases * m.r.lease), First: true}
	return m.directory(m.r.askOne(ctx, m.source.server, step.Command(m.source.base, "")))
}

// lock locks the directory, or goes on to hold it.
func (m *migration) lock(ctx context.Context) (metadata.Entry, error) {
	m.renewed = time.Now()
	return m.directory(m.prepare(ctx, m.source.server, m.source.base, ""))
}

// directory is the source's entry, which must be a directory still.
func (m *migration) directory(found metadata.Result) (metadata.Entry, error) {
	if found.Err == nil && len(found.Entries) == 0 {
		found.Err = &metadata.Error{Path: m.source.base, Err: metadata.ErrNotFound}
	}
	if found.Err != nil {
		return metadata.Entry{}, m.r.lost(m.source, m.source.top, found.Err)
	}
	if found.Entries[0].Kind != metadata.Directory {
		return metadata.Entry{}, errAgain
	}
	return found.Entries[0], nil
}

// watchLeases is how many leases a watch lasts: it holds nobody up.
const watchLeases = 4

// renew keeps what the migration has at its source from ending.
func (m *migration) renew(ctx context.Context) error {
	if time.Since(m.renewed) < m.r.lease/3 {
		return nil
	}
	if m.locked {
		_, err := m.lock(ctx)
		return err
	}
	return m.drain(ctx)
}

// drain learns what was changed since the last time.
func (m *migration) drain(ctx context.Context) error {
	step := metadata.Step{Verb: metadata.Watch, Txn: m.name, Lease: int64(watchLeases * m.r.lease)}
	noted := m.r.askOne(ctx, m.source.server, step.Command(m.source.base, ""))
	if noted.Err != nil {
		return noted.Err // where the answer was lost, what it told is
	}
	if !m.locked {
		m.renewed = time.Now()
	}
	for path, deep := range metadata.ParseChanges(noted.Data) {
		m.pending[path] = m.pending[path] || deep
	}
	return nil
}

const (
	// few changes are left for when the directory is locked: one exchange's.
	few = together
	// rounds is how often what was changed is caught up with at most. Where that does not
	// become little, changes wait for as long as a round takes.
	rounds = 8
)

// catchUp copies what was changed, until that is little.
func (m *migration) catchUp(ctx context.Context) error {
	for range rounds {
		if err := m.drain(ctx); err != nil || len(m.pending) <= few {
			return err
		}
		if err := m.changes(ctx); err != nil {
			return err
		}
	}
	return nil
}
