package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"skerry/systems/metadata"
)

// lease is how long a transaction is left to the router that began it. Then the servers
// that have a part of it see to it themselves.
const lease = 5 * time.Second

// transaction changes several servers' trees at one moment, by two-phase commit with
// presumed abort (Mohan, Lindsay and Obermarck, 1986):
//
//	router      coordinator                 others
//	  ├─prepare─► locks                        │
//	  ├─prepare───────────────────────────────►│ locks, and promises
//	  ├─commit──► runs its commands: decided   │
//	  ├─finish────────────────────────────────►│ runs its commands
//	  └─forget──► drops the decision           │
//
// Every step is a record of the log of the server that takes it, so what a server has
// promised or decided outlives it, and is known to the replica that takes over. A router
// that dies leaves what the servers can end: the coordinator aborts what it has not
// decided, and has the others finish what it has; these ask it.
type transaction struct {
	identity    string // of the change that it makes
	r           *Router
	name        string
	coordinator string
	holds       bool
	others      []string           // that may be prepared
	commands    []metadata.Command // of the coordinator
	undecided   bool               // what became of it is not known
}

// errAgain means that the map has changed: the transaction begins again.
var errAgain = errors.New("the map of subtrees has changed")

// staleMapError is an error that may have come about by a map of the past. settle, which is called
// when the transaction holds nothing any more, returns errAgain where it has, else what
// was wrong.
type staleMapError struct {
	error
	settle func(context.Context) error
}

// transact runs a transaction until it is done or fails. One that meets an older one lets
// go of all it holds, and begins again, with its age. Ages are of wall clocks, and only their
// order counts, which any clocks give: where they differ, who is ahead begins again more often,
// and may say in the end that nothing was changed.
func (r *Router) transact(ctx context.Context, identity string, do func(context.Context, *transaction) metadata.Result) metadata.Result {
	age := time.Now()
	waiting, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	for try := 1; ; try++ {
		t := &transaction{r: r, identity: identity, name: fmt.Sprintf("%016x-%.8s", age.UnixNano(), randomToken())}
		result := do(waiting, t)
		if result.Err == nil || t.undecided {
			return result
		}
		t.abort(ctx)
		var d *staleMapError
		if errors.As(result.Err, &d) {
			result.Err = d.settle(waiting)
		}
		again := errors.Is(result.Err, metadata.ErrLocked) || errors.Is(result.Err, errAgain) || errors.Is(result.Err, metadata.ErrAborted)
		if again {
			select {
			case <-time.After(time.Duration(min(try, 16)) * rand.N(4*time.Millisecond)):
				continue
			case <-waiting.Done():
			}
		}
		if again || waiting.Err() != nil && errors.Is(result.Err, metadata.ErrUnavailable) {
			result.Err = fmt.Errorf("%w: nothing was changed: %w", metadata.ErrUnavailable, result.Err)
		}
		return result
	}
}

// prepare has a server lock two paths and those of the commands, which it is to run if it
// is not the coordinator.
func (t *transaction) prepare(ctx context.Context, server, path, to string, commands ...metadata.Command) metadata.Result {
	step := metadata.Step{Verb: metadata.Prepare, Txn: t.name, Lease: int64(t.r.lease), First: !t.holds, Commands: commands}
	if server != t.coordinator {
		step.Coordinator = t.coordinator
		if !slices.Contains(t.others, server) {
			t.others = append(t.others, server)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, t.r.lease)
	defer cancel()
	result := t.r.sendOne(ctx, server, step.Command(path, to))
	t.holds = t.holds || result.Err == nil
	return result
}

// addCommands adds commands to those that the coordinator runs.
func (t *transaction) addCommands(commands ...metadata.Command) {
	t.commands = append(t.commands, commands...)
}

// detachContext is a context of what must not be left half done since a client has gone.
func (t *transaction) detachContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), t.r.patience)
}

// commit decides the transaction, and has all finish.
func (t *transaction) commit(ctx context.Context) metadata.Result {
	ctx, cancel := t.detachContext(ctx)
	defer cancel()
	step := metadata.Step{Verb: metadata.Commit, Txn: t.name, Servers: t.others, Commands: t.commands}
	deciding := step.Command("/", "")
	deciding.Identity = t.identity
	result := t.r.sendOne(ctx, t.coordinator, deciding)
	if errors.Is(result.Err, metadata.ErrUnavailable) {
		answer := t.r.resolve(ctx, t.coordinator, t.name, metadata.AnyEntry)
		switch string(answer.Data) {
		case metadata.Committed:
			result = metadata.Result{}
		case metadata.Aborted:
			result.Err = metadata.ErrAborted
			if len(t.others) == 0 { // a decision that nobody else needs is not kept
				result.Err, t.undecided = answer.Err, true
			}
		default:
			t.undecided = true
		}
		if t.undecided {
			return metadata.Result{Err: fmt.Errorf("%w: it may have been done or not", metadata.ErrUnavailable)}
		}
	}
	if result.Err != nil {
		return result
	}
	if t.r.finish(ctx, t.name, t.others) == nil && len(t.others) > 0 {
		t.r.step(ctx, t.coordinator, metadata.Forget, t.name)
	}
	return result
}

// abort lets go of all that may be held. What is out of reach sees to it itself.
func (t *transaction) abort(ctx context.Context) {
	ctx, cancel := t.detachContext(ctx)
	defer cancel()
	if !errors.Is(t.r.step(ctx, t.coordinator, metadata.Abort, t.name).Err, metadata.ErrInvalid) {
		_ = t.r.parallel(t.others, func(server string) error { return t.r.step(ctx, server, metadata.Abort, t.name).Err })
	}
}

// finish has servers run what they have promised to.
func (r *Router) finish(ctx context.Context, name string, servers []string) error {
	return r.parallel(servers, func(server string) error { return r.step(ctx, server, metadata.Finish, name).Err })
}

func (r *Router) parallel(servers []string, do func(server string) error) error {
	errs := make([]error, len(servers))
	var asked sync.WaitGroup
	for i, server := range servers {
		asked.Go(func() { errs[i] = do(server) })
	}
	asked.Wait()
	return errors.Join(errs...)
}

// step asks a server for a step that has nothing but the transaction's name.
func (r *Router) step(ctx context.Context, server string, verb metadata.Verb, name string) metadata.Result {
	return r.sendOne(ctx, server, metadata.Step{Verb: verb, Txn: name}.Command("/", ""))
}

// resolve asks a server how a transaction ends that it decides on; see metadata.Resolve.
func (r *Router) resolve(ctx context.Context, server, name string, entry uint64) metadata.Result {
	return r.sendOne(ctx, server, metadata.Step{Verb: metadata.Resolve, Txn: name, Entry: entry}.Command("/", ""))
}

// source is an entry that a transaction takes from its place.
type source struct {
	place
	path    string         // in the server's tree
	entry   metadata.Entry // Virtual with the owner
	data    []byte         // of a file
	virtual []metadata.Entry
}

// lockSource locks an entry, and tells what it is. The server becomes the coordinator.
func (t *transaction) lockSource(ctx context.Context, whole string, at place, also string) (source, error) {
	t.coordinator = at.server
	s := source{place: at, path: at.toLocal(whole)}
	found := t.prepare(ctx, at.server, s.path, also)
	if found.Err == nil && len(found.Entries) == 0 {
		found.Err = &metadata.Error{Path: s.path, Err: metadata.ErrNotFound}
	}
	if found.Err != nil {
		return s, t.r.translateError(at, whole, found.Err)
	}
	s.entry, s.virtual, s.data = found.Entries[0], found.Entries[1:], found.Data
	return s, nil
}

// translateError is an error of a server about the way to a path: errAgain where it tells that the
// map has changed, a doubt where it may.
func (r *Router) translateError(at place, whole string, err error) error {
	var e *metadata.ElsewhereError
	if errors.As(err, &e) && e.At != at.toLocal(whole) && metadata.Under(at.toLocal(whole), e.At) && r.learnArea(at.toGlobal(e.At), e.Owner) {
		return errAgain
	}
	found := at.globalError(metadata.Command{Path: whole}, err)
	if !at.mayBeGone(err) {
		return found
	}
	return &staleMapError{found, func(ctx context.Context) error {
		gone, problem := r.removeDangling(ctx, at)
		switch {
		case problem != nil:
			return problem
		case gone:
			return errAgain
		}
		return found
	}}
}

// lockSubtrees has the servers of subtrees that are below a directory, and of those below these,
// run a command. Virtual are virtual directories in the tree of a server that at is a
// place of.
func (t *transaction) lockSubtrees(ctx context.Context, at place, virtual []metadata.Entry, command func(metadata.Subtree) metadata.Command) error {
	for _, v := range virtual {
		top := at.toGlobal(v.Name)
		sub, ok := metadata.ParseSubtree(v.Owner)
		if _, known := t.r.parseArea(top, v.Owner); !ok || !known {
			return &metadata.ElsewhereError{At: top, Owner: v.Owner}
		}
		for _, part := range sub.Parts() {
			if err := t.lockPart(ctx, place{top: top, server: part.Server, base: part.Base()}, command(part), command); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockPart is along for a subtree, or a part of one, that c is the command for.
func (t *transaction) lockPart(ctx context.Context, at place, c metadata.Command, command func(metadata.Subtree) metadata.Command) error {
	var found metadata.Result
	if at.server == t.coordinator {
		found = t.prepare(ctx, at.server, c.Path, c.To)
		if found.Err == nil && len(found.Entries) == 0 {
			found.Err = metadata.ErrNotFound
		} else if found.Err == nil && c.Op == metadata.Rmdir && found.Entries[0].Size > 0 {
			found.Err = metadata.ErrNotEmpty
		}
		t.addCommands(c)
	} else {
		found = t.prepare(ctx, at.server, c.Path, c.To, c)
	}
	switch {
	case errors.Is(found.Err, metadata.ErrNotFound):
		return t.r.translateError(at, at.top, found.Err)
	case found.Err != nil:
		return found.Err
	}
	return t.lockSubtrees(ctx, at, found.Entries[1:], command)
}

// advanceEpoch is the command that gives a subtree its next epoch: its place in the whole changes.
func advanceEpoch(s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Move, Path: s.Base(), To: s.NextEpoch().Base(), Across: true, MaxDepth: -1}
}

// rmdirSubtree is the command that removes a subtree that is empty.
func rmdirSubtree(s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Rmdir, Path: s.Base(), MaxDepth: -1}
}

// removeSubtree is the command that removes a subtree.
func removeSubtree(s metadata.Subtree) metadata.Command { return removeCommand(s.Base()) }

func removeCommand(path string) metadata.Command {
	return metadata.Command{Op: metadata.Remove, Path: path, Recursive: true, Across: true, MaxDepth: -1}
}

// removeAll is rm -r of what is on several servers.
func (r *Router) removeAll(ctx context.Context, c metadata.Command) metadata.Result {
	result := r.transact(ctx, c.Identity, func(ctx context.Context, t *transaction) metadata.Result {
		s, err := t.lockSource(ctx, c.Path, r.parentPlace(c.Path), "")
		if err != nil {
			return metadata.Result{Err: err}
		}
		virtual := s.virtual
		if s.entry.Kind == metadata.Virtual {
			s.entry.Name = s.path
			virtual = []metadata.Entry{s.entry}
		}
		if err := t.lockSubtrees(ctx, s.place, virtual, removeSubtree); err != nil {
			return metadata.Result{Err: err}
		}
		t.addCommands(removeCommand(s.path))
		return t.commit(ctx)
	})
	r.known.forget(place{top: c.Path})
	return result
}
