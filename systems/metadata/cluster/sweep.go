package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"skerry/systems/metadata"
)

// LeftoverAge is how old an empty directory of /.subtrees must be to be taken for one that a
// router left which died before anything led there: longer than delegate ever takes. It is
// what Sweep is told, by somebody who knows the clocks. A server that sweeps by itself believes
// none, and takes what it has seen for half of it.
const LeftoverAge = time.Hour

// Sweep removes what routers that died have left on the server of a name, and returns the
// paths of its own tree that it removed:
//
//   - copies in /.incoming, of transactions that no server knows any more;
//   - directories of /.subtrees that are empty, were never moved, are older than a duration,
//     and to which no virtual directory of any server leads.
//
// Where a server cannot be asked, what it may need is left, and its error is returned.
func (r *Router) Sweep(ctx context.Context, name string, older time.Duration) ([]string, error) {
	return r.sweep(ctx, name, func(e metadata.Entry) bool { return time.Since(e.Time()) >= older })
}

// sweep is Sweep of subtrees that are old.
func (r *Router) sweep(ctx context.Context, name string, old func(metadata.Entry) bool) ([]string, error) {
	copies, err := r.sweepIncoming(ctx, name)
	subtrees, failed := r.sweepSubtrees(ctx, name, old)
	return append(copies, subtrees...), errors.Join(err, failed)
}

// sightings are when directories were seen first, by a clock that no setting of the time moves. By
// the time that an entry has
//
//  1. delegate makes a directory of /.subtrees, and is about to have a virtual one lead there;
//  2. the server's clock is set forward by an hour, and the server sweeps;
//  3. the directory is old, and removed: the virtual one leads to nothing.
type sightings map[string]time.Time

// isOld tells whether an entry has been there for half of Leftover.
func (s sightings) isOld(e metadata.Entry) bool {
	if _, seen := s[e.Name]; !seen {
		s[e.Name] = time.Now()
	}
	return time.Since(s[e.Name]) >= LeftoverAge/2
}

func (r *Router) sweepIncoming(ctx context.Context, name string) (removed []string, err error) {
	copies, err := r.listAll(ctx, name, metadata.Incoming)
	for _, e := range copies {
		path := metadata.Join(metadata.Incoming, e.Name) // it is named after its transaction
		over, problem := r.isUnknown(ctx, e.Name)
		if problem == nil && over {
			problem = r.sendOne(ctx, name, removeCommand(path)).Err
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

// isUnknown tells whether no server knows a transaction: who wants to go on with it is refused.
func (r *Router) isUnknown(ctx context.Context, txn string) (bool, error) {
	for _, server := range slices.Sorted(maps.Keys(r.servers.Service)) {
		answer := r.resolve(ctx, server, txn, metadata.AnyEntry)
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

func (r *Router) sweepSubtrees(ctx context.Context, name string, old func(metadata.Entry) bool) (removed []string, err error) {
	subtrees, err := r.listAll(ctx, name, metadata.Subtrees)
	var left []metadata.Subtree
	for _, e := range subtrees {
		sub, ok := metadata.ParseBase(metadata.Join(metadata.Subtrees, e.Name))
		if ok && sub.Epoch == 0 && e.Kind == metadata.Directory && e.Size == 0 && old(e) {
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
			if named, err = r.listOwners(ctx, server); err != nil {
				return nil, fmt.Errorf("asking %s what leads to subtrees: %w", server, err)
			}
			left = slices.DeleteFunc(left, func(s metadata.Subtree) bool { return named[s.Owner()] })
		}
	}
	for _, sub := range left {
		gone := r.sendOne(ctx, name, metadata.Command{Op: metadata.Rmdir, Path: sub.Base(), MaxDepth: -1})
		switch {
		case gone.Err == nil:
			removed = append(removed, sub.Base())
		case !errors.Is(gone.Err, metadata.ErrNotFound) && !errors.Is(gone.Err, metadata.ErrNotEmpty):
			err = errors.Join(err, fmt.Errorf("removing %s of %s: %w", sub.Base(), name, gone.Err))
		}
	}
	return removed, err
}

// listAll are those of a directory that a server may not have.
func (r *Router) listAll(ctx context.Context, server, dir string) (all []metadata.Entry, err error) {
	page := metadata.Command{Op: metadata.List, Path: dir, Long: true, Limit: metadata.MaxLimit, MaxDepth: -1}
	for {
		listed := r.sendOne(ctx, server, page)
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

// listOwners are those of all virtual directories of a server.
func (r *Router) listOwners(ctx context.Context, server string) (map[string]bool, error) {
	all := make(map[string]bool)
	page := metadata.Command{Op: metadata.Find, Path: "/", Kind: metadata.Virtual, Limit: metadata.MaxLimit, MaxDepth: -1}
	for {
		found := r.sendOne(ctx, server, page)
		if found.Err != nil {
			return nil, found.Err
		}
		for _, e := range found.Entries {
			sub, _ := metadata.ParseSubtree(e.Owner)
			for _, part := range sub.Parts() {
				all[part.Owner()] = true
			}
		}
		if page.After = found.Next; page.After == "" {
			return all, nil
		}
	}
}
