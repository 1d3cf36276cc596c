package metadata

import (
	"context"
	"errors"
	"path"
	"slices"

	vocab "skerry/systems/metadata"

	"skerry/internal/load"
)

const (
	// fieldsAtMost are in a record.
	maxFields = vocab.MaxLimit
	// together is how many records a scan reads with one request.
	scanBatch = 100
)

func (w *worker) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	var found [][]load.Field
	var err error
	if found, err = w.readRecords(ctx, tableDir(table), []string{key}, fields); err != nil {
		return dst, err
	}
	if found[0] == nil {
		return dst, load.ErrNotFound
	}
	return append(dst, found[0]...), nil
}

// readRecords reads records, nil for a missing one. Without field names it reads all fields.
func (w *worker) readRecords(ctx context.Context, dir string, keys, fields []string) ([][]load.Field, error) {
	if fields != nil {
		return w.readFiles(ctx, dir, keys, func(int) []string { return fields })
	}
	var commands []vocab.Command
	for _, key := range keys {
		at := path.Join(dir, key)
		commands = append(commands, vocab.Command{Op: vocab.List, Path: at, Limit: maxFields})
		for _, f := range w.fields {
			commands = append(commands, readCommand(at, f))
		}
	}
	results, err := w.runCommands(ctx, commands)
	if err != nil {
		return nil, err
	}
	each := 1 + len(w.fields)
	found, names, asKnown := make([][]load.Field, len(keys)), make([][]string, len(keys)), true
	for i := range keys {
		list := results[i*each]
		if errors.Is(list.Err, vocab.ErrNotFound) {
			continue
		}
		if list.Err != nil {
			return nil, classifyError(list.Err)
		}
		for _, e := range list.Entries {
			names[i] = append(names[i], e.Name)
		}
		asKnown = asKnown && slices.Equal(names[i], w.fields)
		if found[i], err = presentFields(w.fields, results[i*each+1:(i+1)*each]); err != nil {
			return nil, err
		}
	}
	if asKnown {
		return found, nil
	}
	for _, n := range names {
		if n != nil {
			w.fields = n
		}
	}
	return w.readFiles(ctx, dir, keys, func(i int) []string { return names[i] })
}

func (w *worker) readFiles(ctx context.Context, dir string, keys []string, fields func(i int) []string) ([][]load.Field, error) {
	var commands []vocab.Command
	for i, key := range keys {
		for _, f := range fields(i) {
			commands = append(commands, readCommand(path.Join(dir, key), f))
		}
	}
	results, err := w.runCommands(ctx, commands)
	if err != nil {
		return nil, err
	}
	found := make([][]load.Field, len(keys))
	for i := range keys {
		n := len(fields(i))
		if found[i], err = presentFields(fields(i), results[:n]); err != nil {
			return nil, err
		}
		results = results[n:]
	}
	return found, nil
}

func presentFields(names []string, results []vocab.Result) (fields []load.Field, err error) {
	for i, r := range results {
		switch {
		case r.Err == nil:
			fields = append(fields, load.Field{Name: names[i], Value: r.Data})
		case !errors.Is(r.Err, vocab.ErrNotFound):
			return nil, classifyError(r.Err)
		}
	}
	return fields, nil
}

func (w *worker) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (seen int, err error) {
	dir := tableDir(table)
	first := vocab.Command{Op: vocab.Stat, Path: path.Join(dir, start)} // List begins behind it
	list := vocab.Command{Op: vocab.List, Path: dir, After: start}
	for seen < count {
		list.Limit = min(count-seen, scanBatch)
		results, err := w.runCommands(ctx, []vocab.Command{first, list})
		if err != nil {
			return seen, err
		}
		var keys []string
		if results[0].Err == nil && list.After == start {
			keys = append(keys, start)
		}
		if results[1].Err != nil {
			return seen, classifyError(results[1].Err)
		}
		for _, e := range results[1].Entries {
			keys = append(keys, e.Name)
		}
		keys = keys[:min(len(keys), count-seen)]
		found, err := w.readRecords(ctx, dir, keys, fields)
		if err != nil {
			return seen, err
		}
		for i, record := range found {
			if record == nil {
				continue // it went meanwhile
			}
			seen++
			if visit != nil {
				visit(keys[i], record)
			}
		}
		if list.After = results[1].Next; list.After == "" {
			return seen, nil
		}
	}
	return seen, nil
}
