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

const lease = 5 * time.Second

// transaction changes several servers' trees at one moment, by two-phase commit with presumed abort (Mohan, Lindsay and
// Obermarck, 1986):
//
//	router      coordinator                 others
//	  ├─prepare─► locks                        │
//	  ├─prepare───────────────────────────────►│ locks, and promises
//	  ├─commit──► runs its commands: decided   │
//	  ├─finish────────────────────────────────►│ runs its commands
//	  └─forget──► drops the decision           │
//
// Every step is a record in the receiving server's log. Promises and decisions therefore survive the server, and a
// replica that takes over knows them. If the router dies, the servers end the transaction: the coordinator aborts if it
// has not decided, and otherwise makes the others finish. The others ask the coordinator.
type transaction struct {
	identity    string // of the change
	r           *Router
	name        string
	coordinator string
	holds       bool
	others      []string           // possibly prepared
	commands    []metadata.Command // of the coordinator
	undecided   bool               // the outcome is unknown
}

// errAgain means that the map has changed and that the transaction must start again.
var errAgain = errors.New("the map of subtrees has changed")

// staleMapError is an error that an outdated map may have caused. settle, called after the transaction has released its
// locks, returns errAgain if that is so, and otherwise the original error.
type staleMapError struct {
	error
	settle func(context.Context) error
}

// transact runs a transaction until it succeeds or fails. A transaction that meets an older one releases its locks and
// starts again with its original age. Ages come from wall clocks. Only their order matters, and any clocks give an order:
// if clocks differ, the routers whose clocks are ahead start again more often, and may give up with nothing changed.
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

// prepare makes a server lock the paths. Servers other than the coordinator run the commands in finish.
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

func (t *transaction) addCommands(commands ...metadata.Command) {
	t.commands = append(t.commands, commands...)
}

// detachContext returns a context for steps that must complete even if the client has gone.
func (t *transaction) detachContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), t.r.patience)
}

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
			if len(t.others) == 0 { // such a coordinator does not record its decision
				result.Err, t.undecided = answer.Err, true
			}
		default:
			t.undecided = true
		}
		if t.undecided {
			return metadata.Result{Err: fmt.Errorf("%w: the change may or may not have been made", metadata.ErrUnavailable)}
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

// abort releases all locks. Unreachable servers release theirs by themselves.
func (t *transaction) abort(ctx context.Context) {
	ctx, cancel := t.detachContext(ctx)
	defer cancel()
	if !errors.Is(t.r.step(ctx, t.coordinator, metadata.Abort, t.name).Err, metadata.ErrInvalid) {
		_ = t.r.parallel(t.others, func(server string) error { return t.r.step(ctx, server, metadata.Abort, t.name).Err })
	}
}

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

func (r *Router) step(ctx context.Context, server string, verb metadata.Verb, name string) metadata.Result {
	return r.sendOne(ctx, server, metadata.Step{Verb: verb, Txn: name}.Command("/", ""))
}

// resolve asks a server for the outcome of a transaction that the server decides; see metadata.Resolve.
func (r *Router) resolve(ctx context.Context, server, name string, entry uint64) metadata.Result {
	return r.sendOne(ctx, server, metadata.Step{Verb: metadata.Resolve, Txn: name, Entry: entry}.Command("/", ""))
}

type source struct {
	place
	path    string         // in the server's tree
	entry   metadata.Entry // Virtual with the owner
	data    []byte         // of a file
	virtual []metadata.Entry
}

// lockSource locks and returns an entry. Its server becomes the coordinator.
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

// translateError returns errAgain for an error of a changed map, a staleMapError if the map may have changed.
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

// lockSubtrees prepares a command on the servers of all subtrees below. virtual is from the tree of at.server.
func (t *transaction) lockSubtrees(ctx context.Context, at place, virtual []metadata.Entry,
	command func(metadata.Subtree) metadata.Command) error {
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

// advanceEpoch returns the command that gives a subtree its next epoch, because its place in the shared tree changes.
func advanceEpoch(s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Move, Path: s.Base(), To: s.NextEpoch().Base(), Across: true, MaxDepth: -1}
}

func rmdirSubtree(s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Rmdir, Path: s.Base(), MaxDepth: -1}
}

func removeSubtree(s metadata.Subtree) metadata.Command { return removeCommand(s.Base()) }

func removeCommand(path string) metadata.Command {
	return metadata.Command{Op: metadata.Remove, Path: path, Recursive: true, Across: true, MaxDepth: -1}
}

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
