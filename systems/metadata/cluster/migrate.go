package cluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"skerry/systems/metadata"
)

// migrate moves a directory with its content to another server while it is in use, splits it over several servers, or
// merges its parts:
//
//	watch     the source records changes in the directory from now on
//	copy      its content, apart, to the target
//	catch up  copy the recorded changes, until few are left
//	lock      changes wait
//	switch    copy the last changes; a transaction puts the copy in place
//
// Subtrees on other servers stay there. Reads continue throughout.
func (r *Router) migrate(ctx context.Context, c metadata.Command) metadata.Result {
	result := r.transact(ctx, c.Identity, func(ctx context.Context, t *transaction) metadata.Result {
		aside, targets := metadata.Join(metadata.Incoming, t.name), strings.Split(c.Owner, ",")
		m := migration{transaction: t, target: area{place{top: aside, server: targets[0], base: aside}, targets}, pending: make(map[string]bool)}
		result := m.run(context.WithoutCancel(ctx), c)
		if result.Err != nil && !t.undecided {
			// Nothing leads there. If the removal fails, the leftover is invisible.
			_ = r.parallel(targets, func(server string) error { return r.sendOne(ctx, server, removeCommand(aside)).Err })
		}
		return result
	})
	r.known.forget(place{top: c.Path})
	return result
}

type migration struct {
	*transaction
	target  area  // target servers and the directory of the copy; top equals base
	source  place // the directory on its first server, which is the coordinator
	from    area  // source servers, by their own paths; top equals base
	locked  bool  // nothing in the directory changes
	renewed time.Time
	pending map[string]bool // source paths changed since they were copied; true: with everything below
	touches []makeCommand   // of directories, whose times change while they are filled
}

func (m *migration) run(ctx context.Context, c metadata.Command) metadata.Result {
	above := m.r.parentPlace(c.Path)
	path := above.toLocal(c.Path)
	at := m.r.sendOne(ctx, above.server, metadata.Command{Op: metadata.List, Path: path, Limit: 1, MaxDepth: -1})
	sub := metadata.Subtree{Server: c.Owner, ID: m.r.token()}
	m.source = place{top: c.Path, server: above.server, base: path}
	servers := []string{above.server}
	owner := "" // of the directory if it is virtual
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
		return metadata.Result{} // already there
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
	// The coordinator decides only with its lock. Another part's lock may have been lost before that server's prepare.
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
	// Changes made while a lock was lost and reacquired are recorded by the watch.
	for {
		if err = m.drainChanges(ctx); err != nil || len(m.pending) == 0 {
			return top, err
		}
		if err = m.copyPending(ctx); err != nil {
			return top, err
		}
	}
}

func (m *migration) watchSource(ctx context.Context) (metadata.Entry, error) {
	m.coordinator, m.renewed = m.source.server, time.Now()
	m.others = append(m.others, m.from.parts[1:]...)
	step := metadata.Step{Verb: metadata.Watch, Txn: m.name, Lease: int64(watchLeases * m.r.lease), First: true}
	return m.eachPart(func(server string) metadata.Result { return m.r.sendOne(ctx, server, step.Command(m.source.base, "")) })
}

func (m *migration) lockSourceParts(ctx context.Context) (metadata.Entry, error) {
	m.renewed = time.Now()
	return m.eachPart(func(server string) metadata.Result { return m.lockPath(ctx, server, m.source.base) })
}

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

// watchLeases is the length of a watch in leases. A watch blocks no other request.
const watchLeases = 4

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

func (m *migration) drainChanges(ctx context.Context) error {
	step := metadata.Step{Verb: metadata.Watch, Txn: m.name, Lease: int64(watchLeases * m.r.lease)}
	for _, server := range m.from.parts {
		noted := m.r.sendOne(ctx, server, step.Command(m.source.base, ""))
		if noted.Err != nil {
			return noted.Err // the changes in a lost answer are lost
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
	// lockThreshold is the number of changes left for the time under lock: one exchange.
	lockThreshold = copyBatch
	// catchUpRounds bounds the rounds before the lock. Changes that are too fast then wait for one round.
	catchUpRounds = 8
)

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
