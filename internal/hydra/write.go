package hydra

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/consensus"
	"skerry/internal/hydra/api"
	"skerry/internal/hydra/command"
)

// Write implements api.Backend. A transaction whose outcome depends on rows is answered
// by this cloud's database, once it has applied it; another is certain when it is
// committed, and so acknowledged then.
func (n *Node) Write(ctx context.Context, t *api.Transaction, ack api.Ack) (api.Written, error) {
	conditional := t.Conditional()
	if err := n.acceptable(ctx, t, conditional || ack != api.Committed); err != nil {
		return api.Written{}, err
	}
	data := t.Append(nil)
	if len(data) > consensus.MaxEntry {
		return api.Written{}, api.Problemf(api.CodeTooLarge, "the transaction has %d bytes, more than %d", len(data), consensus.MaxEntry)
	}
	index, err := n.log.Propose(ctx, data)
	if err != nil {
		return api.Written{}, notProposed(err)
	}
	if !conditional && ack == api.Committed {
		return api.Written{Version: index, Ack: api.Committed}, nil
	}
	return n.acknowledge(ctx, index, ack, conditional)
}

// acceptable refuses, before anything is done, what could not be answered or done.
func (n *Node) acceptable(ctx context.Context, t *api.Transaction, answered bool) error {
	if err := n.usable(); err != nil && (answered || n.store == nil || !n.store.Ready()) {
		return err // without a database there are no tables known to write to either
	}
	created := make(map[string]bool)
	for _, w := range t.Writes {
		switch {
		case w.Do == command.CreateTable:
			created[w.Table] = true
		case w.Do == command.DropTable || created[w.Table] || n.store.Has(w.Table):
		default:
			// It may have been made just now.
			if err := n.linearizable(ctx); err != nil {
				return api.Problemf(api.CodeUnavailable, "finding out whether there is a table %s: %v", w.Table, err)
			}
			if !n.store.Has(w.Table) {
				return outcomeOf(command.Outcome{Code: command.UnknownTable})
			}
		}
	}
	return nil
}

// notProposed is an error of the log as a problem.
func notProposed(err error) error {
	switch {
	case errors.Is(err, consensus.ErrLogFull):
		return api.Problemf(api.CodeOverloaded, "%v", err)
	case errors.Is(err, consensus.ErrTooLarge):
		return api.Problemf(api.CodeTooLarge, "%v", err)
	case errors.Is(err, consensus.ErrNotDone):
		return api.Problemf(api.CodeUnavailable, "%v", err)
	}
	return api.Problemf(api.CodeInDoubt, "%v", err)
}

// acknowledge waits for what a write that is committed is to be acknowledged at.
func (n *Node) acknowledge(ctx context.Context, index uint64, ack api.Ack, conditional bool) (api.Written, error) {
	if err := n.progress.wait(ctx, index); err != nil {
		if conditional {
			return api.Written{}, api.Problemf(api.CodeInDoubt, "it is in the log at %d, but not applied yet: %v", index, err)
		}
		return api.Written{}, &api.Problem{Code: api.CodeNotReached, Version: index, Message: fmt.Sprintf("committed at %d, not applied here yet: %v", index, err)}
	}
	outcome, err := n.resolve(ctx, index, conditional)
	if err != nil {
		return api.Written{}, err
	}
	if err := outcomeOf(outcome); err != nil {
		return api.Written{}, err
	}
	if ack == api.Everywhere {
		if err := n.remotes.wait(ctx, index); err != nil {
			return api.Written{}, &api.Problem{Code: api.CodeNotReached, Version: outcome.Version, Message: fmt.Sprintf("committed at %d and applied in %s: %v", index, n.Cloud, err)}
		}
	} else {
		ack = api.Applied
	}
	return api.Written{Version: outcome.Version, Ack: ack}, nil
}

// resolve is what an entry came to that is applied.
func (n *Node) resolve(ctx context.Context, index uint64, conditional bool) (command.Outcome, error) {
	if o, ok := n.progress.outcome(index); ok {
		return o, nil
	}
	if !conditional && n.lead.Load() {
		return command.Outcome{Code: command.OK, Version: index}, nil
	}
	o, ok, err := n.store.Outcome(ctx, index)
	switch {
	case err != nil:
		return o, api.Problemf(api.CodeInDoubt, "it is applied at %d; its outcome: %v", index, err)
	case !ok && conditional:
		return o, api.Problemf(api.CodeInDoubt, "it is applied at %d, but its outcome is no longer known", index)
	case !ok:
		return command.Outcome{Code: command.OK, Version: index}, nil
	}
	return o, nil
}
