package metadata

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/load/mdtest"
	vocab "skerry/systems/metadata"
	metacluster "skerry/systems/metadata/cluster"
)

// defaultTable is YCSB's.
const defaultTable = "usertable"

func tableDir(table string) string {
	if table == "" {
		table = defaultTable
	}
	return "/" + table
}

type worker struct {
	tree   *metacluster.Client
	areas  []string
	fields []string // that records were last seen to have
}

var (
	_ load.Client     = (*worker)(nil)
	_ load.Counter    = (*worker)(nil)
	_ load.TreeClient = (*worker)(nil)
)

func openClient(ctx context.Context, s settings) (*worker, error) {
	tree, err := metacluster.Connect(ctx, s.addresses)
	if err != nil {
		return nil, fmt.Errorf("opening a client of metadata: %w", err)
	}
	return &worker{tree: tree, areas: s.areas}, nil
}

func (w *worker) Close() error {
	w.tree.Close()
	return nil
}

func (w *worker) runCommands(ctx context.Context, commands []vocab.Command) ([]vocab.Result, error) {
	for i := range commands {
		if err := commands[i].Check(); err != nil {
			return nil, load.Failed(vocab.ErrorCode(err), "", err)
		}
	}
	return w.tree.Do(ctx, commands), nil
}

// unchanged is the message of a server that refused a change.
const unchanged = "nothing was changed"

// classifyError turns an error of the service into one of the load driver.
func classifyError(err error) error {
	var dial *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vocab.ErrNotFound):
		return load.ErrNotFound
	case !errors.Is(err, vocab.ErrUnavailable):
		return load.Failed(vocab.ErrorCode(err), "", err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return load.Failed(database.DialErrorClass(err), "", err)
	case strings.Contains(err.Error(), unchanged):
		return load.Failed(vocab.ErrorCode(err), "", err)
	}
	class := database.ErrorClass(err)
	if class == database.ClassOther {
		class = vocab.ErrorCode(err)
	}
	return load.Unknown(class, "", err)
}

func readCommand(dir, field string) vocab.Command {
	return vocab.Command{Op: vocab.Read, Path: path.Join(dir, field)}
}

func writeCommands(dir string, values []load.Field) []vocab.Command {
	var all []vocab.Command
	for _, f := range values {
		all = append(all, vocab.Command{Op: vocab.Write, Path: path.Join(dir, f.Name), Data: f.Value})
	}
	return all
}

// Insert implements load.Client. It writes the whole record, whether there is one or not.
func (w *worker) Insert(ctx context.Context, table, key string, values []load.Field) error {
	dir := path.Join(tableDir(table), key)
	results, err := w.runCommands(ctx, append([]vocab.Command{{Op: vocab.Mkdir, Path: dir}}, writeCommands(dir, values)...))
	if err != nil {
		return err
	}
	for i, r := range results {
		if i == 0 && errors.Is(r.Err, vocab.ErrExists) {
			continue
		}
		if r.Err != nil {
			return classifyError(r.Err)
		}
	}
	return nil
}

func (w *worker) Update(ctx context.Context, table, key string, values []load.Field) error {
	results, err := w.runCommands(ctx, writeCommands(path.Join(tableDir(table), key), values))
	for i := 0; i < len(results) && err == nil; i++ {
		err = classifyError(results[i].Err)
	}
	return err
}

func (w *worker) Delete(ctx context.Context, table, key string) error {
	results, err := w.runCommands(ctx, []vocab.Command{{Op: vocab.Remove, Path: path.Join(tableDir(table), key), Recursive: true}})
	if err != nil {
		return err
	}
	return classifyError(results[0].Err)
}

func (w *worker) Count(ctx context.Context, table string) (int64, error) {
	results, err := w.runCommands(ctx, []vocab.Command{{Op: vocab.Stat, Path: tableDir(table)}})
	switch {
	case err != nil:
		return 0, err
	case errors.Is(results[0].Err, vocab.ErrNotFound):
		return 0, nil
	case results[0].Err != nil:
		return 0, classifyError(results[0].Err)
	}
	return results[0].Entries[0].Size, nil
}

// ErrAreas is returned if the client properties name no areas.
var ErrAreas = errors.New("no areas of the tree are configured")

func (w *worker) Areas() int { return len(w.areas) }

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
