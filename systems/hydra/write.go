package hydra

import (
	"context"
	"errors"
	"fmt"

	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
)

// Write implements api.Backend. A transaction whose outcome depends on rows is answered after this
// cloud's database has applied it; any other is acknowledged at commit.
func (n *Node) Write(ctx context.Context, t *api.Transaction, ack api.Ack) (api.Written, error) {
	conditional := t.Conditional()
	since, err := n.checkTables(ctx, t, conditional || ack != api.Committed)
	if err != nil {
		return api.Written{}, err
	}
	data := t.Append(nil)
	if len(data) > consensus.MaxEntry {
		return api.Written{}, api.Problemf(api.CodeTooLarge, "the transaction has %d bytes, more than %d", len(data), consensus.MaxEntry)
	}
	index, err := n.log.Propose(ctx, data)
	if err != nil {
		return api.Written{}, proposeProblem(err)
	}
	certain := !conditional && (len(requiredTables(t)) == 0 || n.tablesUnchanged(ctx, since, index))
	if certain && ack == api.Committed {
		return api.Written{Version: index, Ack: api.Committed}, nil
	}
	return n.awaitAck(ctx, index, ack, conditional, certain)
}

// checkTables rejects transactions on missing tables before they are proposed. Tables are known up to entry since.
func (n *Node) checkTables(ctx context.Context, t *api.Transaction, answered bool) (since uint64, err error) {
	unusable := n.checkUsable(ctx)
	if unusable != nil && (answered || n.store == nil) {
		return 0, unusable
	}
	since, missing, ok := n.findTables(ctx, t)
	switch {
	case !ok && unusable != nil:
		return 0, unusable // the tables are unknown, too
	case ok && missing == "":
		return since, nil
	}
	if _, err := n.awaitLinearizable(ctx); err != nil { // the table may have just been created
		return 0, api.Problemf(api.CodeUnavailable, "looking up table %s: %v", missing, err)
	}
	if since, missing = n.store.CheckTables(requiredTables(t)); missing != "" {
		return 0, outcomeProblem(command.Outcome{Code: command.UnknownTable})
	}
	return since, nil
}

func proposeProblem(err error) error {
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

// awaitAck waits until a committed write may be acknowledged. certain: it succeeds wherever it is applied.
func (n *Node) awaitAck(ctx context.Context, index uint64, ack api.Ack, conditional, certain bool) (api.Written, error) {
	if err := n.progress.wait(ctx, index); err != nil {
		if !certain {
			return api.Written{}, api.Problemf(api.CodeInDoubt, "in the log at %d, not applied yet: %v", index, err)
		}
		return api.Written{}, &api.Problem{Code: api.CodeNotReached, Version: index,
			Message: fmt.Sprintf("committed at %d, not applied here yet: %v", index, err)}
	}
	outcome := command.Outcome{Code: command.OK, Version: index}
	if !certain {
		var err error
		if outcome, err = n.resolveOutcome(ctx, index, conditional); err != nil {
			return api.Written{}, err
		}
	}
	if err := outcomeProblem(outcome); err != nil {
		return api.Written{}, err
	}
	if ack == api.Everywhere {
		if err := n.remotes.wait(ctx, index); err != nil {
			return api.Written{}, &api.Problem{Code: api.CodeNotReached, Version: outcome.Version,
				Message: fmt.Sprintf("committed at %d and applied in %s: %v", index, n.Cloud, err)}
		}
	} else {
		ack = api.Applied
	}
	return api.Written{Version: outcome.Version, Ack: ack}, nil
}

// resolveOutcome returns the outcome of an applied entry. If another member applied it, a missing
// outcome means success only if failures are known to be stored.
func (n *Node) resolveOutcome(ctx context.Context, index uint64, conditional bool) (command.Outcome, error) {
	if o, ok := n.progress.findOutcome(index); ok {
		return o, nil
	}
	done := command.Outcome{Code: command.OK, Version: index}
	if !conditional && n.progress.succeeded(index) {
		return done, nil
	}
	o, found, known, err := n.store.Outcome(ctx, index)
	n.handleStateLoss(err)
	switch {
	case err != nil:
		return o, api.Problemf(api.CodeInDoubt, "applied at %d; reading its outcome: %v", index, err)
	case found:
		return o, nil
	case conditional || !known:
		return o, api.Problemf(api.CodeInDoubt, "applied at %d; its outcome is no longer known", index)
	}
	return done, nil
}
