package spread

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"skerry/internal/metadata"
)

// subtrees is the directory of each server's tree that has the subtrees which were given
// to it.
const subtrees = "/.subtrees"

// token is 128 random bits: the name of a subtree's directory, which no other ever has.
func token() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// delegate gives an empty directory to another server: a directory is made there, and at
// one moment, if it still is empty, the one here leads to it. What a crash between the two
// leaves is a directory that nothing leads to.
func (r *Router) delegate(ctx context.Context, c metadata.Command) metadata.Result {
	target := c.Owner
	if r.servers.Service[target] == nil {
		return failed(c.Path, fmt.Errorf("%w owner: %w: %s", metadata.ErrInvalid, ErrServer, metadata.Quote(target)))
	}
	found := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path}})[0]
	switch {
	case found.Err != nil:
		return found
	case found.Entries[0].Kind != metadata.Directory:
		return failed(c.Path, metadata.ErrNotDirectory)
	}
	base := metadata.Join(subtrees, r.token())
	if made := r.askOne(ctx, target, metadata.Command{Op: metadata.Mkdir, Path: base, Parents: true, Mode: found.Entries[0].Mode}); made.Err != nil {
		return metadata.Result{Err: fmt.Errorf("making it on %s: %w", target, made.Err)}
	}
	c.Owner, c.Exclusive = owner(target, base), true
	at := r.place(c)
	result := r.follow(ctx, c, at, r.askOne(ctx, at.server, at.local(c)))
	if result.Err != nil && !errors.Is(result.Err, metadata.ErrUnavailable) {
		// It certainly leads nowhere. Where it stays, nobody sees it.
		_ = r.askOne(ctx, target, metadata.Command{Op: metadata.Rmdir, Path: base})
	}
	return result
}

// move gives an entry another name or directory on the same server.
func (r *Router) move(ctx context.Context, c metadata.Command) metadata.Result {
	for range maxHops {
		from, to := r.parent(c.Path), r.parent(c.To)
		local := c
		local.Path, local.To = from.in(c.Path), to.in(c.To)
		var result metadata.Result
		same := from.server == to.server
		if same {
			result = r.askOne(ctx, from.server, local)
		}
		var e *metadata.Elsewhere
		switch {
		case same && errors.As(result.Err, &e) && c.Path == c.To && e.At == local.Path:
			return r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path}})[0] // it is there already
		case e != nil:
			final, answer := r.moveMet(c, local, from, to, e)
			if final && errors.Is(answer.Err, metadata.ErrExists) && r.learn(c.To, e.Owner) {
				if gone, err := r.buried(ctx, r.placeOf(c.To)); err == nil && gone {
					continue
				}
			}
			if final {
				return answer
			}
			continue
		case same && !errors.Is(result.Err, metadata.ErrNotFound):
			return r.moved(c, from, to, result)
		}
		gone, err := r.buried(ctx, from)
		if err == nil && !gone {
			gone, err = r.buried(ctx, to)
		}
		switch {
		case err != nil:
			return metadata.Result{Err: err}
		case !gone && same:
			return r.moved(c, from, to, result)
		case !gone:
			return elsewhere(to.top, owner(to.server, to.base))
		}
	}
	return circle(c.Path)
}

// moveMet learns from a virtual directory that a move met, or answers with it.
func (r *Router) moveMet(c, local metadata.Command, from, to place, e *metadata.Elsewhere) (final bool, _ metadata.Result) {
	at, whole, own := from, c.Path, local.Path
	if !metadata.Under(local.Path, e.At) && metadata.Under(local.To, e.At) {
		at, whole, own = to, c.To, local.To
	}
	switch top := at.out(e.At); {
	case e.At == local.To && whole == c.To:
		return true, failed(c.To, metadata.ErrExists)
	case !metadata.Under(own, e.At), e.At == own, !r.learn(top, e.Owner):
		return true, elsewhere(top, e.Owner)
	}
	return false, metadata.Result{}
}

// moved is a server's answer to a move as one of the whole tree.
func (r *Router) moved(c metadata.Command, from, to place, result metadata.Result) metadata.Result {
	err := from.problem(c, result.Err)
	if err == result.Err { // not about the path; about the new one, perhaps
		about := c
		about.Path = c.To
		err = to.problem(about, result.Err)
	}
	result.Err = err
	return result
}
