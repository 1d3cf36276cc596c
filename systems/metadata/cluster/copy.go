package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"skerry/systems/metadata"
)

const (
	copyBatch = 256
	sendBytes = 1 << 20
)

// makeCommand is a command that creates a copy of the source path from.
type makeCommand struct {
	metadata.Command
	from      string
	tolerated error // error that does not matter
}

type item struct {
	from    string
	entry   metadata.Entry
	replace bool // remove the target's entry first
	update  bool // the target may have the entry with another mode
}

func (m *migration) copyAll(ctx context.Context, top metadata.Entry) error {
	for _, server := range m.target.parts {
		_, _ = m.r.sweepIncoming(ctx, server) // leftovers that cannot be removed now are removed later
	}
	begin := makeCommand{Command: metadata.Command{Op: metadata.Mkdir, Path: metadata.Incoming, Parents: true,
		Mode: metadata.DefaultDirMode, MaxDepth: -1}}
	if err := m.sendToTarget(ctx, append([]makeCommand{begin}, m.makeCommands(item{from: m.source.base, entry: top}, nil)...)); err != nil {
		return fmt.Errorf("copying the subtree: %w", err)
	}
	err := m.copyBelow(ctx, m.source.base)
	if err == nil {
		err = m.finishTouches(ctx)
	}
	if err != nil {
		return fmt.Errorf("copying the subtree: %w", err)
	}
	return nil
}

func (m *migration) copyBelow(ctx context.Context, open ...string) error {
	for len(open) > 0 {
		dir := open[len(open)-1]
		open = open[:len(open)-1]
		servers := []string{m.from.locate(dir).server}
		if dir == m.source.base {
			servers = m.from.parts
		}
		for _, server := range servers {
			below, err := m.copyDirectory(ctx, server, dir)
			if err != nil {
				return err
			}
			open = append(open, below...)
		}
	}
	return nil
}

// copyDirectory copies the entries of a directory that one server holds, and returns the directories among them.
func (m *migration) copyDirectory(ctx context.Context, server, dir string) (open []string, err error) {
	page := metadata.Command{Op: metadata.List, Path: dir, Long: true, Limit: copyBatch, MaxDepth: -1}
	for more := true; more; more = page.After != "" {
		if err := m.renewLease(ctx); err != nil {
			return nil, err
		}
		listed := m.r.sendOne(ctx, server, page)
		if m.deferChange(dir, listed.Err) {
			break
		}
		if listed.Err != nil {
			return nil, listed.Err
		}
		items := make([]item, len(listed.Entries))
		for i, e := range listed.Entries {
			items[i] = item{from: metadata.Join(dir, e.Name), entry: e}
			if e.Kind == metadata.Directory {
				open = append(open, items[i].from)
			}
		}
		if err := m.makeEntries(ctx, items); err != nil {
			return nil, err
		}
		page.After = listed.Next
	}
	return open, nil
}

func (m *migration) sendToSource(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results := make([]metadata.Result, len(commands))
	for _, server := range m.from.parts {
		var its []metadata.Command
		var at []int
		for i, c := range commands {
			if m.from.locate(c.Path).server == server {
				its, at = append(its, c), append(at, i)
			}
		}
		if len(its) > 0 {
			for i, r := range m.r.send(ctx, server, its) {
				results[at[i]] = r
			}
		}
	}
	return results
}

// deferChange reports whether an error results from a concurrent change. It then marks the path for copying again.
func (m *migration) deferChange(from string, err error) bool {
	if err == nil || m.locked {
		return false
	}
	for _, class := range []error{metadata.ErrNotFound, metadata.ErrExists, metadata.ErrNotEmpty, metadata.ErrNotDirectory,
		metadata.ErrIsDirectory, metadata.ErrElsewhere} {
		if errors.Is(err, class) {
			m.pending[from] = true
			return true
		}
	}
	return false
}

func (m *migration) makeEntries(ctx context.Context, items []item) error {
	for len(items) > 0 {
		var reads []metadata.Command
		n, size := 0, int64(0)
		for n < len(items) && size < sendBytes {
			if items[n].entry.Kind == metadata.File {
				reads, size = append(reads, metadata.Command{Op: metadata.Read, Path: items[n].from, MaxDepth: -1}), size+items[n].entry.Size
			}
			n++
		}
		var contents []metadata.Result
		if len(reads) > 0 {
			contents = m.sendToSource(ctx, reads)
		}
		var commands []makeCommand
		for _, one := range items[:n] {
			var data []byte
			if one.entry.Kind == metadata.File {
				read := contents[0]
				contents = contents[1:]
				if m.deferChange(one.from, read.Err) {
					continue
				}
				if read.Err != nil {
					return read.Err
				}
				data = read.Data
			}
			commands = append(commands, m.makeCommands(one, data)...)
		}
		if err := m.sendToTarget(ctx, commands); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

func (m *migration) makeCommands(one item, data []byte) []makeCommand {
	e, path := one.entry, rebase(one.from, m.source.base, m.target.base)
	var commands []makeCommand
	add := func(c metadata.Command, may error) {
		c.Path, c.MaxDepth = path, -1
		commands = append(commands, makeCommand{c, one.from, may})
	}
	if one.replace {
		add(metadata.Command{Op: metadata.Remove, Recursive: true, Across: true}, metadata.ErrNotFound)
	}
	touch := metadata.Command{Op: metadata.Touch, Path: path, Time: e.Modified, MaxDepth: -1}
	if e.Kind == metadata.File {
		add(metadata.Command{Op: metadata.Write, Mode: e.Mode, Data: data}, nil)
	} else {
		add(metadata.Command{Op: metadata.Mkdir, Mode: e.Mode}, metadata.ErrExists)
	}
	if one.update || e.Mode == 0 { // creating commands cannot express mode 0
		add(metadata.Command{Op: metadata.Chmod, Mode: e.Mode}, nil)
	}
	switch e.Kind {
	case metadata.Directory:
		m.touches = append(m.touches, makeCommand{touch, one.from, metadata.ErrNotFound})
	case metadata.File:
		commands = append(commands, makeCommand{touch, one.from, nil})
	case metadata.Virtual:
		add(metadata.Command{Op: metadata.Delegate, Owner: e.Owner, Exclusive: true}, nil)
	}
	return commands
}

func (m *migration) finishTouches(ctx context.Context) error {
	touches := m.touches
	m.touches = nil
	return m.sendToTarget(ctx, touches)
}

func (m *migration) sendToTarget(ctx context.Context, commands []makeCommand) error {
	for len(commands) > 0 {
		if err := m.renewLease(ctx); err != nil {
			return err
		}
		var batch []metadata.Command
		for n, size := 0, 0; n < len(commands) && n < 4*copyBatch && size < sendBytes; n++ {
			batch, size = append(batch, commands[n].Command), size+len(commands[n].Data)+len(commands[n].Path)
		}
		for _, server := range m.target.parts {
			if err := m.sendToPart(ctx, server, commands[:len(batch)], batch); err != nil {
				return err
			}
		}
		commands = commands[len(batch):]
	}
	return nil
}

// sendToPart runs the commands that concern one server of the target: its entries, and the directory itself.
func (m *migration) sendToPart(ctx context.Context, server string, commands []makeCommand, batch []metadata.Command) error {
	if len(m.target.parts) > 1 {
		its := func(path string) bool {
			return path == m.target.base || path == metadata.Incoming || m.target.locate(path).server == server
		}
		var some []makeCommand
		batch = nil
		for _, c := range commands {
			if its(c.Path) {
				some, batch = append(some, c), append(batch, c.Command)
			}
		}
		commands = some
	}
	if len(batch) == 0 {
		return nil
	}
	for i, r := range m.r.send(ctx, server, batch) {
		c := commands[i]
		if r.Err != nil && (c.tolerated == nil || !errors.Is(r.Err, c.tolerated)) && !m.deferChange(c.from, r.Err) {
			return r.Err
		}
	}
	return nil
}

func (m *migration) copyPending(ctx context.Context) error {
	pending := m.pending
	m.pending = make(map[string]bool)
	covered := func(path string) bool {
		for path != m.source.base {
			if path, _ = metadata.Split(path); pending[path] {
				return true
			}
		}
		return false
	}
	// Parents precede their children. The directories that contain changes have new times.
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(pending)), covered)
	for paths := range slices.Chunk(all, copyBatch) {
		if err := m.renewLease(ctx); err != nil {
			return err
		}
		if err := m.copyPaths(ctx, paths, pending); err != nil {
			return fmt.Errorf("copying changes in the subtree: %w", err)
		}
	}
	return m.finishTouches(ctx)
}

func (m *migration) copyPaths(ctx context.Context, paths []string, deep map[string]bool) error {
	asked := make([]metadata.Command, 0, 2*len(paths))
	for _, path := range paths {
		asked = append(asked, metadata.Command{Op: metadata.Stat, Path: path, MaxDepth: -1})
	}
	for i, path := range paths {
		dir, _ := metadata.Split(path)
		if path != m.source.base && (i == 0 || !slices.ContainsFunc(asked[len(paths):], func(c metadata.Command) bool { return c.Path == dir })) {
			asked = append(asked, metadata.Command{Op: metadata.Stat, Path: dir, MaxDepth: -1})
		}
	}
	found := m.sendToSource(ctx, asked)
	var items []item
	var gone []makeCommand
	var open []string
	for i, path := range paths {
		err := found[i].Err
		var e *metadata.ElsewhereError
		switch {
		case errors.As(err, &e) && e.At == path:
			virtual := metadata.Entry{Kind: metadata.Virtual, Mode: metadata.DefaultDirMode, Owner: e.Owner}
			items = append(items, item{from: path, entry: virtual, replace: true})
		case errors.Is(err, metadata.ErrNotFound), errors.Is(err, metadata.ErrNotDirectory):
			gone = append(gone, makeCommand{removeCommand(rebase(path, m.source.base, m.target.base)), path, metadata.ErrNotFound})
		case m.deferChange(path, err):
		case err != nil:
			return err
		default:
			entry := found[i].Entries[0]
			items = append(items, item{from: path, entry: entry, update: true, replace: path != m.source.base && deep[path]})
			if deep[path] && entry.Kind == metadata.Directory {
				open = append(open, path)
			}
		}
	}
	if err := m.sendToTarget(ctx, gone); err != nil {
		return err
	}
	if err := m.makeEntries(ctx, items); err != nil {
		return err
	}
	for i, c := range asked[len(paths):] {
		if r := found[len(paths)+i]; r.Err == nil {
			touch := metadata.Command{Op: metadata.Touch, Path: rebase(c.Path, m.source.base, m.target.base),
				Time: r.Entries[0].Modified, MaxDepth: -1}
			m.touches = append(m.touches, makeCommand{touch, c.Path, metadata.ErrNotFound})
		}
	}
	return m.copyBelow(ctx, open...)
}
