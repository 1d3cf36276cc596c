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

// token is 128 random bits: the name of a subtree's directory, which no other ever has.
func token() string {
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
			return failed(c.Path, fmt.Errorf("%w owner: %w: %s", metadata.ErrInvalid, ErrServer, metadata.Quote(target)))
		}
		if i > 0 && target == targets[i-1] {
			return failed(c.Path, fmt.Errorf("%w owner: %s is named twice, and a server has one part", metadata.ErrInvalid, target))
		}
	}
	c.Owner = strings.Join(targets, ",")
	found := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path}})[0]
	switch {
	case found.Err != nil:
		return found
	case found.Entries[0].Kind != metadata.Directory:
		return failed(c.Path, metadata.ErrNotDirectory)
	case found.Entries[0].Size > 0:
		return r.migrate(ctx, c)
	}
	sub := metadata.Subtree{Server: c.Owner, ID: r.token()}
	base := sub.Base()
	if sub := sub.Next(); len(sub.Owner()) > metadata.MaxName {
		return failed(c.Path, fmt.Errorf("%w owner: the names of %d servers are too long", metadata.ErrInvalid, len(targets)))
	}
	for _, target := range targets {
		if made := r.askOne(ctx, target, metadata.Command{Op: metadata.Mkdir, Path: base, Parents: true, Mode: found.Entries[0].Mode}); made.Err != nil {
			return metadata.Result{Err: fmt.Errorf("making it on %s: %w", target, made.Err)}
		}
	}
	c.Owner, c.Exclusive = sub.Owner(), true
	at := r.place(c)
	result := r.follow(ctx, c, at, r.askOne(ctx, at.server, at.local(c)))
	var e *metadata.Elsewhere
	filled := errors.Is(result.Err, metadata.ErrNotEmpty) || errors.As(result.Err, &e) && e.At == c.Path
	if filled {
		c.Owner = sub.Server
		result = r.migrate(ctx, c)
	}
	if filled || result.Err != nil && !errors.Is(result.Err, metadata.ErrUnavailable) {
		// It certainly leads nowhere. Where it stays, nobody sees it.
		_ = r.all(targets, func(target string) error {
			return r.askOne(ctx, target, metadata.Command{Op: metadata.Rmdir, Path: base}).Err
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
		from, to := r.parent(c.Path), r.parent(c.To)
		if from.server != to.server {
			return r.rename(ctx, c)
		}
		local := c
		local.Path, local.To = from.in(c.Path), to.in(c.To)
		if hop > 0 {
			local.Identity = metadata.NextTry(c.Identity, hop)
		}
		result := r.askOne(ctx, from.server, local)
		var e *metadata.Elsewhere
		switch {
		case errors.As(result.Err, &e) && r.onTheWay(from, local.Path, e), e != nil && r.onTheWay(to, local.To, e):
			continue
		case e != nil:
			return r.rename(ctx, c)
		case !errors.Is(result.Err, metadata.ErrNotFound):
			return r.moved(c, from, to, result)
		}
		gone, err := r.buried(ctx, from)
		if err == nil && !gone {
			gone, err = r.buried(ctx, to)
		}
		switch {
		case err != nil:
			return metadata.Result{Err: err}
		case !gone:
			return r.moved(c, from, to, result)
		}
	}
	return circle(c.Path)
}

// onTheWay learns from a virtual directory that is on the way to a path.
func (r *Router) onTheWay(at place, path string, e *metadata.Elsewhere) bool {
	return e.At != path && metadata.Under(path, e.At) && r.learn(at.out(e.At), e.Owner)
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
