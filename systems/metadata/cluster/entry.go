package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/systems/metadata"
)

// randomToken is 128 random bits: the name of a subtree's directory, which no other ever has.
func randomToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// delegate gives an empty directory to another server, or parts it between several: a directory is
// made there, and at one moment, if it still is empty, the one here leads to it. What a crash between
// the two leaves is a directory that nothing leads to.
func (r *Router) delegate(ctx context.Context, c metadata.Command) metadata.Result {
	targets := slices.Sorted(strings.SplitSeq(c.Owner, ","))
	for i, target := range targets {
		if r.servers.Service[target] == nil {
			return failure(c.Path, fmt.Errorf("%w owner: %w: %s", metadata.ErrInvalid, ErrServer, metadata.Quote(target)))
		}
		if i > 0 && target == targets[i-1] {
			return failure(c.Path, fmt.Errorf("%w owner: %s is named twice, and a server has one part", metadata.ErrInvalid, target))
		}
	}
	c.Owner = strings.Join(targets, ",")
	found := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path}})[0]
	switch {
	case found.Err != nil:
		return found
	case found.Entries[0].Kind != metadata.Directory:
		return failure(c.Path, metadata.ErrNotDirectory)
	case found.Entries[0].Size > 0:
		return r.migrate(ctx, c)
	}
	sub := metadata.Subtree{Server: c.Owner, ID: r.token()}
	base := sub.Base()
	if sub := sub.NextEpoch(); len(sub.Owner()) > metadata.MaxName {
		return failure(c.Path, fmt.Errorf("%w owner: the names of %d servers are too long", metadata.ErrInvalid, len(targets)))
	}
	for _, target := range targets {
		if made := r.sendOne(ctx, target, metadata.Command{Op: metadata.Mkdir, Path: base, Parents: true, Mode: found.Entries[0].Mode}); made.Err != nil {
			return metadata.Result{Err: fmt.Errorf("making it on %s: %w", target, made.Err)}
		}
	}
	c.Owner, c.Exclusive = sub.Owner(), true
	at := r.commandPlace(c)
	result := r.followResult(ctx, c, at, r.sendOne(ctx, at.server, at.localCommand(c)))
	var e *metadata.ElsewhereError
	filled := errors.Is(result.Err, metadata.ErrNotEmpty) || errors.As(result.Err, &e) && e.At == c.Path
	if filled {
		c.Owner = sub.Server
		result = r.migrate(ctx, c)
	}
	if filled || result.Err != nil && !errors.Is(result.Err, metadata.ErrUnavailable) {
		// It certainly leads nowhere. Where it stays, nobody sees it.
		_ = r.parallel(targets, func(target string) error {
			return r.sendOne(ctx, target, metadata.Command{Op: metadata.Rmdir, Path: base}).Err
		})
	}
	return result
}

// move gives an entry another name or directory. Where one server can do it, it does.
func (r *Router) move(ctx context.Context, c metadata.Command) metadata.Result {
	if c.Path == c.To { // it is there already, if it is
		return r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path, MaxDepth: -1}})[0]
	}
	for hop := range maxHops {
		from, to := r.parentPlace(c.Path), r.parentPlace(c.To)
		if from.server != to.server {
			return r.rename(ctx, c)
		}
		local := c
		local.Path, local.To = from.toLocal(c.Path), to.toLocal(c.To)
		if hop > 0 {
			local.Identity = metadata.RetryIdentity(c.Identity, hop)
		}
		result := r.sendOne(ctx, from.server, local)
		var e *metadata.ElsewhereError
		switch {
		case errors.As(result.Err, &e) && r.learnAncestor(from, local.Path, e), e != nil && r.learnAncestor(to, local.To, e):
			continue
		case e != nil:
			return r.rename(ctx, c)
		case !errors.Is(result.Err, metadata.ErrNotFound):
			return r.moveResult(c, from, to, result)
		}
		gone, err := r.removeDangling(ctx, from)
		if err == nil && !gone {
			gone, err = r.removeDangling(ctx, to)
		}
		switch {
		case err != nil:
			return metadata.Result{Err: err}
		case !gone:
			return r.moveResult(c, from, to, result)
		}
	}
	return loopError(c.Path)
}

// learnAncestor learns from a virtual directory that is on the way to a path.
func (r *Router) learnAncestor(at place, path string, e *metadata.ElsewhereError) bool {
	return e.At != path && metadata.Under(path, e.At) && r.learnArea(at.toGlobal(e.At), e.Owner)
}

// moveResult is a server's answer to a move as one of the whole tree.
func (r *Router) moveResult(c metadata.Command, from, to place, result metadata.Result) metadata.Result {
	err := from.globalError(c, result.Err)
	if err == result.Err { // not about the path; about the new one, perhaps
		about := c
		about.Path = c.To
		err = to.globalError(about, result.Err)
	}
	result.Err = err
	return result
}
