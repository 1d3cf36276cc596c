package spread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"skerry/internal/metadata"
)

// Leftover is how old an empty directory of /.subtrees must be to be taken for one that a
// router left which died before anything led there: longer than delegate ever takes.
const Leftover = time.Hour

// Sweep removes what routers that died have left on the server of a name, and returns the
// paths of its own tree that it removed:
//
//   - copies in /.incoming, of transactions that no server knows any more;
//   - directories of /.subtrees that are empty, were never moved, are older than a duration,
//     and to which no virtual directory of any server leads.
//
// Where a server cannot be asked, what it may need is left, and its error is returned.
func (r *Router) Sweep(ctx context.Context, name string, older time.Duration) ([]string, error) {
	copies, err := r.sweepIncoming(ctx, name)
	subtrees, failed := r.sweepSubtrees(ctx, name, older)
	return append(copies, subtrees...), errors.Join(err, failed)
}

func (r *Router) sweepIncoming(ctx context.Context, name string) (removed []string, err error) {
	copies, err := r.entries(ctx, name, metadata.Incoming)
	for _, e := range copies {
		path := metadata.Join(metadata.Incoming, e.Name) // it is named after its transaction
		over, problem := r.over(ctx, e.Name)
		if problem == nil && over {
			problem = r.askOne(ctx, name, removalOf(path)).Err
		}
		switch {
		case problem != nil:
			err = errors.Join(err, fmt.Errorf("removing %s of %s: %w", path, name, problem))
		case over:
			removed = append(removed, path)
		}
	}
	return removed, err
}

// over tells whether no server knows a transaction: who wants to go on with it is refused.
func (r *Router) over(ctx context.Context, txn string) (bool, error) {
	for _, server := range slices.Sorted(maps.Keys(r.servers.Service)) {
		answer := r.step(ctx, server, metadata.Resolve, txn)
		switch {
		case errors.Is(answer.Err, metadata.ErrInvalid): // it has promised, and another one decides
			return false, nil
		case answer.Err != nil:
			return false, fmt.Errorf("asking %s: %w", server, answer.Err)
		case string(answer.Data) != metadata.Aborted:
			return false, nil
		}
	}
	return true, nil
}

func (r *Router) sweepSubtrees(ctx context.Context, name string, older time.Duration) (removed []string, err error) {
	subtrees, err := r.entries(ctx, name, metadata.Subtrees)
	var left []metadata.Subtree
	for _, e := range subtrees {
		sub, ok := metadata.ParseBase(metadata.Join(metadata.Subtrees, e.Name))
		if ok && sub.Epoch == 0 && e.Kind == metadata.Directory && e.Size == 0 && time.Since(e.Time()) >= older {
			sub.Server = name
			left = append(left, sub)
		}
	}
	// A search is of no moment: what is moved meanwhile may not be seen. So there are two.
	for range 2 {
		for server := range r.servers.Service {
			if err != nil || len(left) == 0 {
				return nil, err
			}
			var named map[string]bool
			if named, err = r.owners(ctx, server); err != nil {
				return nil, fmt.Errorf("asking %s what leads to subtrees: %w", server, err)
			}
			left = slices.DeleteFunc(left, func(s metadata.Subtree) bool { return named[s.Owner()] })
		}
	}
	for _, sub := range left {
		gone := r.askOne(ctx, name, metadata.Command{Op: metadata.Rmdir, Path: sub.Base(), MaxDepth: -1})
		switch {
		case gone.Err == nil:
			removed = append(removed, sub.Base())
		case !errors.Is(gone.Err, metadata.ErrNotFound) && !errors.Is(gone.Err, metadata.ErrNotEmpty):
			err = errors.Join(err, fmt.Errorf("removing %s of %s: %w", sub.Base(), name, gone.Err))
		}
	}
	return removed, err
}

// entries are those of a directory that a server may not have.
func (r *Router) entries(ctx context.Context, server, dir string) (all []metadata.Entry, err error) {
	page := metadata.Command{Op: metadata.List, Path: dir, Long: true, Limit: metadata.MaxLimit, MaxDepth: -1}
	for {
		listed := r.askOne(ctx, server, page)
		if errors.Is(listed.Err, metadata.ErrNotFound) {
			return all, nil
		}
		if listed.Err != nil {
			return all, fmt.Errorf("listing %s of %s: %w", dir, server, listed.Err)
		}
		all = append(all, listed.Entries...)
		if page.After = listed.Next; page.After == "" {
			return all, nil
		}
	}
}

// owners are those of all virtual directories of a server.
func (r *Router) owners(ctx context.Context, server string) (map[string]bool, error) {
	all := make(map[string]bool)
	page := metadata.Command{Op: metadata.Find, Path: "/", Kind: metadata.Virtual, Limit: metadata.MaxLimit, MaxDepth: -1}
	for {
		found := r.askOne(ctx, server, page)
		if found.Err != nil {
			return nil, found.Err
		}
		for _, e := range found.Entries {
			all[e.Owner] = true
		}
		if page.After = found.Next; page.After == "" {
			return all, nil
		}
	}
}
