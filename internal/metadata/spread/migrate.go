package spread

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/metadata"
)

// migrate moves a directory with all below it to another server. What is in it is copied
// aside while it cannot be changed, and goes on to be read; at one moment then the copy
// takes its place. Subtrees of other servers in it stay where they are.
func (r *Router) migrate(ctx context.Context, c metadata.Command) metadata.Result {
	result := r.transact(ctx, func(ctx context.Context, t *transaction) metadata.Result {
		m := migration{transaction: t, target: c.Owner, aside: metadata.Join(metadata.Incoming, t.name)}
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
	renewed time.Time
	touches []metadata.Command // of directories, whose times change while they are filled
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
	top, err := m.lock(ctx)
	if err != nil {
		return metadata.Result{Err: err}
	}
	if err := m.copy(ctx, top); err != nil {
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

// lock locks the directory, or goes on to hold it.
func (m *migration) lock(ctx context.Context) (metadata.Entry, error) {
	m.coordinator, m.renewed = m.source.server, time.Now()
	found := m.prepare(ctx, m.source.server, m.source.base, "")
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

// together is how many entries are copied at once.
const together = 256

// copy makes what is below the directory anew on the target, aside.
func (m *migration) copy(ctx context.Context, top metadata.Entry) error {
	m.sweep(ctx)
	begin := []metadata.Command{{Op: metadata.Mkdir, Path: metadata.Incoming, Parents: true, Mode: metadata.DefaultDirMode, MaxDepth: -1}}
	if err := m.send(ctx, append(begin, m.made(m.aside, top, nil)...)); err != nil {
		return err
	}
	for open := []string{m.source.base}; len(open) > 0; {
		dir := open[len(open)-1]
		open = open[:len(open)-1]
		page := metadata.Command{Op: metadata.List, Path: dir, Long: true, Limit: together, MaxDepth: -1}
		for more := true; more; more = page.After != "" {
			listed := m.r.askOne(ctx, m.source.server, page)
			if listed.Err != nil {
				return fmt.Errorf("copying the subtree: %w", listed.Err)
			}
			below, err := m.page(ctx, dir, listed.Entries)
			if err != nil {
				return fmt.Errorf("copying the subtree: %w", err)
			}
			open, page.After = append(open, below...), listed.Next
		}
	}
	return m.send(ctx, m.touches)
}

// leftFor is how long what a router that died has copied is left on the target.
const leftFor = time.Hour

// sweep removes what others left on the target.
func (m *migration) sweep(ctx context.Context) {
	old := fmt.Sprintf("%016x", time.Now().Add(-leftFor).UnixNano())
	left := m.r.askOne(ctx, m.target, metadata.Command{Op: metadata.List, Path: metadata.Incoming, Limit: together, MaxDepth: -1})
	for _, e := range left.Entries {
		if e.Name < old { // it is named after its transaction, which is named after its beginning
			_ = m.r.askOne(ctx, m.target, removalOf(metadata.Join(metadata.Incoming, e.Name)))
		}
	}
}

// page copies entries of a directory, and returns the directories among them.
func (m *migration) page(ctx context.Context, dir string, entries []metadata.Entry) (below []string, err error) {
	if time.Since(m.renewed) > m.r.lease/3 {
		if _, err := m.lock(ctx); err != nil {
			return nil, err
		}
	}
	var commands []metadata.Command
	for _, e := range entries {
		from := metadata.Join(dir, e.Name)
		var data []byte
		switch e.Kind {
		case metadata.Directory:
			below = append(below, from)
		case metadata.File:
			read := m.r.askOne(ctx, m.source.server, metadata.Command{Op: metadata.Read, Path: from, MaxDepth: -1})
			if read.Err != nil {
				return nil, read.Err
			}
			data = read.Data
		}
		commands = append(commands, m.made(rebase(from, m.source.base, m.aside), e, data)...)
	}
	return below, m.send(ctx, commands)
}

// made are the commands that make an entry as it is at a path.
func (m *migration) made(path string, e metadata.Entry, data []byte) []metadata.Command {
	touch := metadata.Command{Op: metadata.Touch, Path: path, Time: e.Modified, MaxDepth: -1}
	var commands []metadata.Command
	if e.Kind == metadata.File {
		commands = []metadata.Command{{Op: metadata.Write, Path: path, Mode: e.Mode, Data: data, Exclusive: true, MaxDepth: -1}}
	} else {
		commands = []metadata.Command{{Op: metadata.Mkdir, Path: path, Mode: e.Mode, MaxDepth: -1}}
	}
	commands = withMode(e, path, commands...)
	switch e.Kind {
	case metadata.Directory:
		m.touches = append(m.touches, touch)
	case metadata.File:
		commands = append(commands, touch)
	case metadata.Virtual:
		commands = append(commands, metadata.Command{Op: metadata.Delegate, Path: path, Owner: e.Owner, Exclusive: true, MaxDepth: -1})
	}
	return commands
}

// sendBytes is about how much is sent to the target at once.
const sendBytes = 1 << 20

func (m *migration) send(ctx context.Context, commands []metadata.Command) error {
	for len(commands) > 0 {
		n, size := 0, 0
		for n < len(commands) && n < 2*together && size < sendBytes {
			size += len(commands[n].Data) + len(commands[n].Path)
			n++
		}
		for _, r := range m.r.ask(ctx, m.target, commands[:n]) {
			if r.Err != nil {
				return r.Err
			}
		}
		commands = commands[n:]
	}
	return nil
}
