package cluster

import (
	"context"
	"fmt"
	"slices"

	"skerry/systems/metadata"
)

// A change that was asked for before, of a router that hung, may have been made, on whichever
// server: one record of one log decides on it, of the server that had what is changed, or of the
// transaction's coordinator. That server remembers the change's identity. So all are asked, and
// only what none of them knows is done. What was on its way meanwhile meets its own identity
// there, or has its transaction's locks taken away:
//
//  1. router A has prepared a move on g1, and hangs;
//  2. router B is asked again. No server knows the move; B waits for A's locks, until A's lease ends;
//  3. A wakes up and commits. Either its transaction was ended, and nothing happens; or it comes
//     before, and B, whose move fails then, asks all servers once more.

// doAgain does commands that were asked for before.
func (r *Router) doAgain(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results := make([]metadata.Result, 0, len(commands))
	for _, c := range commands {
		result, known := r.recallChange(ctx, c)
		if !known {
			result = r.route(ctx, []metadata.Command{c})[0]
			if result.Err != nil {
				if before, known := r.recallChange(ctx, c); known {
					result = before
				}
			}
		}
		results = append(results, result)
	}
	return results
}

// recallChange finds out whether a change has been made; known with an error where that cannot be told.
func (r *Router) recallChange(ctx context.Context, c metadata.Command) (result metadata.Result, known bool) {
	if c.Identity == "" || !c.Op.Changes() {
		return result, false
	}
	names := r.names()
	seen := metadata.RequestFrom(ctx).Seen
	answers := make([]metadata.Result, len(names))
	failed := r.eachServer(names, func(i int, name string) error {
		step := metadata.Step{Verb: metadata.Recall, Txn: c.Identity, Entry: seen[name]}
		answers[i] = r.sendOne(ctx, name, step.Command("/", ""))
		return answers[i].Err
	})
	for _, a := range answers {
		if a.Err == nil && string(a.Data) == metadata.Committed {
			a.Data = nil
			if c.Op == metadata.Move && len(a.Entries) > 0 {
				_, a.Entries[0].Name = metadata.Split(c.To)
			}
			return a, true
		}
	}
	if failed == nil {
		return result, false
	}
	return metadata.Result{Err: fmt.Errorf("%w: it may have been done or not: %w", metadata.ErrUnavailable, failed)}, true
}

// eachServer asks servers at the same time.
func (r *Router) eachServer(names []string, do func(i int, name string) error) error {
	return r.parallel(names, func(name string) error { return do(slices.Index(names, name), name) })
}

// Seen is how far the servers' logs are, as far as this router has heard.
func (r *Router) Seen() metadata.Seen {
	all := make(metadata.Seen)
	for _, s := range r.servers.Service {
		if s, ok := s.(interface{ Seen() metadata.Seen }); ok {
			all.Add(s.Seen())
		}
	}
	return all
}
