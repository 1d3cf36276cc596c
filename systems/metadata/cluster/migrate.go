package cluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"skerry/systems/metadata"
)

// migrate moves a directory with all below it to another server while it is used, or parts it
// between several, or brings its parts together:
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
		aside, targets := metadata.Join(metadata.Incoming, t.name), strings.Split(c.Owner, ",")
		m := migration{transaction: t, target: area{place{top: aside, server: targets[0], base: aside}, targets}, pending: make(map[string]bool)}
		result := m.run(context.WithoutCancel(ctx), c)
		if result.Err != nil && !t.undecided {
			// Nothing leads there. Where it stays, nobody sees it.
			_ = r.parallel(targets, func(server string) error { return r.sendOne(ctx, server, removeCommand(aside)).Err })
		}
		return result
	})
	r.known.forget(place{top: c.Path})
	return result
}

// migration is a subtree on its way.
type migration struct {
	*transaction
	target  area  // the servers that it moves to, and where it is made there, aside: its top is its base
	source  place // the directory, and the server that has it or its first part, which is the coordinator
	from    area  // the servers that have it, by paths of theirs: its top is its base
	locked  bool  // the directory is: nothing in it changes
	renewed time.Time
	pending map[string]bool // paths of the source that were changed since they were copied; those below too
	touches []makeCommand   // of directories, whose times change while they are filled
}

func (m *migration) run(ctx context.Context, c metadata.Command) metadata.Result {
	above := m.r.parentPlace(c.Path)
	path := above.toLocal(c.Path)
	at := m.r.sendOne(ctx, above.server, metadata.Command{Op: metadata.List, Path: path, Limit: 1, MaxDepth: -1})
	sub := metadata.Subtree{Server: c.Owner, ID: m.r.token()}
	m.source = place{top: c.Path, server: above.server, base: path}
	servers := []string{above.server}
	owner := "" // of the directory, where it is virtual
	if e := virtualIn(metadata.Command{Op: metadata.List, Path: path}, at); e != nil && e.At == path {
		old, ok := metadata.ParseSubtree(e.Owner)
		if !ok {
			return elsewhereResult(c.Path, e.Owner)
		}
		sub, owner, servers = old.NextEpoch(), e.Owner, old.Servers()
		sub.Server = c.Owner
		m.source = place{top: c.Path, server: servers[0], base: old.Base()}
	} else if at.Err != nil {
		return metadata.Result{Err: m.r.translateError(above, c.Path, at.Err)}
	}
	if slices.Equal(servers, m.target.parts) {
		return metadata.Result{} // it is there already
	}
	m.from = area{place{top: m.source.base, server: servers[0], base: m.source.base}, servers}
	top, err := m.copyAndLock(ctx)
	if err != nil {
		return metadata.Result{Err: err}
	}
	arrive := []metadata.Command{
		{Op: metadata.Mkdir, Path: metadata.Subtrees, Parents: true, MaxDepth: -1},
		{Op: metadata.Move, Path: m.target.base, To: sub.Base(), Across: true, MaxDepth: -1},
	}
	m.transaction.addCommands(removeCommand(m.source.base))
	for _, part := range m.from.parts[1:] {
		if gone := m.prepare(ctx, part, m.source.base, "", removeCommand(m.source.base)); gone.Err != nil {
			return metadata.Result{Err: m.r.translateError(m.source, c.Path, gone.Err)}
		}
	}
	for _, part := range m.target.parts {
		if made := m.prepare(ctx, part, m.target.base, "", arrive...); made.Err != nil {
			return made
		}
	}
	if owner == "" {
		made := metadata.Command{Op: metadata.Mkdir, Path: path, Mode: top.Mode, MaxDepth: -1}
		m.transaction.addCommands(made, delegateCommand(path, sub))
	} else {
		switched := metadata.Command{Op: metadata.Delegate, Path: path, To: owner, Owner: sub.Owner(), MaxDepth: -1}
		if made := m.prepare(ctx, above.server, path, "", switched); made.Err != nil {
			return metadata.Result{Err: m.r.translateError(above, c.Path, made.Err)}
		}
	}
	// The coordinator decides only while it has its lock. Another part's may have been lost for a
	// while, before the promise.
	if len(servers) > 1 {
		if err := m.drainChanges(ctx); err != nil {
			return metadata.Result{Err: err}
		}
		if len(m.pending) > 0 {
			return metadata.Result{Err: errAgain}
		}
	}
	return m.commit(ctx)
}

// copyAndLock copies the directory, and returns with it locked and the copy whole.
func (m *migration) copyAndLock(ctx context.Context) (top metadata.Entry, err error) {
	if top, err = m.watchSource(ctx); err != nil {
		return top, err
	}
	if err = m.copyAll(ctx, top); err == nil {
		err = m.catchUp(ctx)
	}
	if err != nil {
		return top, err
	}
	m.locked = true
	if top, err = m.lockSourceParts(ctx); err != nil {
		return top, err
	}
	// A lock that was lost for a while, and taken again, is told by what was changed then.
	for {
		if err = m.drainChanges(ctx); err != nil || len(m.pending) == 0 {
			return top, err
		}
		if err = m.copyPending(ctx); err != nil {
			return top, err
		}
	}
}

// watchSource has the server note what is changed in the directory.
func (m *migration) watchSource(ctx context.Context) (metadata.Entry, error) {
	m.coordinator, m.renewed = m.source.server, time.Now()
	m.others = append(m.others, m.from.parts[1:]...)
	step := metadata.Step{Verb: metadata.Watch, Txn: m.name, Lease: int64(watchLeases * m.r.lease), First: true}
	return m.eachPart(func(server string) metadata.Result { return m.r.sendOne(ctx, server, step.Command(m.source.base, "")) })
}

// lockSourceParts locks the directory, or goes on to hold it.
func (m *migration) lockSourceParts(ctx context.Context) (metadata.Entry, error) {
	m.renewed = time.Now()
	return m.eachPart(func(server string) metadata.Result { return m.lockPath(ctx, server, m.source.base) })
}

// eachPart asks all servers of the source for its entry, and returns the first's.
func (m *migration) eachPart(ask func(server string) metadata.Result) (top metadata.Entry, err error) {
	for i, server := range m.from.parts {
		e, err := m.sourceEntry(ask(server))
		if err != nil {
			return e, err
		}
		if i == 0 {
			top = e
		}
	}
	return top, nil
}

// sourceEntry is the source's entry, which must be a directory still.
func (m *migration) sourceEntry(found metadata.Result) (metadata.Entry, error) {
	if found.Err == nil && len(found.Entries) == 0 {
		found.Err = &metadata.Error{Path: m.source.base, Err: metadata.ErrNotFound}
	}
	if found.Err != nil {
		return metadata.Entry{}, m.r.translateError(m.source, m.source.top, found.Err)
	}
	if found.Entries[0].Kind != metadata.Directory {
		return metadata.Entry{}, errAgain
	}
	return found.Entries[0], nil
}

// watchLeases is how many leases a watch lasts: it holds nobody up.
const watchLeases = 4

// renewLease keeps what the migration has at its source from ending.
func (m *migration) renewLease(ctx context.Context) error {
	if time.Since(m.renewed) < m.r.lease/3 {
		return nil
	}
	if m.locked {
		_, err := m.lockSourceParts(ctx)
		return err
	}
	return m.drainChanges(ctx)
}

// drainChanges learns what was changed since the last time.
func (m *migration) drainChanges(ctx context.Context) error {
	step := metadata.Step{Verb: metadata.Watch, Txn: m.name, Lease: int64(watchLeases * m.r.lease)}
	for _, server := range m.from.parts {
		noted := m.r.sendOne(ctx, server, step.Command(m.source.base, ""))
		if noted.Err != nil {
			return noted.Err // where the answer was lost, what it told is
		}
		for path, deep := range metadata.ParseChanges(noted.Data) {
			m.pending[path] = m.pending[path] || deep
		}
	}
	if !m.locked {
		m.renewed = time.Now()
	}
	return nil
}

const (
	// few changes are left for when the directory is locked: one exchange's.
	lockThreshold = copyBatch
	// rounds is how often what was changed is caught up with at most. Where that does not
	// become little, changes wait for as long as a round takes.
	catchUpRounds = 8
)

// catchUp copies what was changed, until that is little.
func (m *migration) catchUp(ctx context.Context) error {
	for range catchUpRounds {
		if err := m.drainChanges(ctx); err != nil || len(m.pending) <= lockThreshold {
			return err
		}
		if err := m.copyPending(ctx); err != nil {
			return err
		}
	}
	return nil
}
