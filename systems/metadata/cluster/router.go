// Package cluster is one directory tree on several servers.
//
// Each server, which may be a group of replicas, has a tree of its own. One has the root.
// A virtual directory in one tree stands for a directory in another: its owner is the
// text "SERVER:/PATH". So the map of subtrees to servers is in the trees, each piece with
// the server that answers for it, and a subtree does not know where in the whole it is:
//
//	root's tree        g2's tree
//	/                  /.subtrees/
//	├── home ────────► │   └── 5f1c…/     is /home
//	└── etc/           │       └── ann/   is /home/ann
//
// A Router answers commands on the whole tree by asking servers for theirs. It learns the
// map from the virtual directories that it meets, and keeps it. What it keeps may be of the
// past: that does no harm, since a subtree's directory has a name of its own which is never
// used again. A server that no longer has it says so, and the router looks anew.
//
// Every server has a Router in front; a client that has one too goes to the right server at
// once.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
)

// Service answers commands on one server's own tree.
type Service interface {
	// Do runs commands that passed Check one after the other, and returns as many results.
	Do(ctx context.Context, commands []metadata.Command) []metadata.Result
}

var (
	// ErrServer means a server that nobody knows.
	ErrServer = errors.New("no such server")
	// ErrCircle means virtual directories that stand for each other.
	ErrCircle = errors.New("the map of subtrees leads nowhere")
)

// Servers are the servers that share a tree, by name.
type Servers struct {
	Root string // the name of the one that has "/"
	// Service of each server, Root's among them.
	Service map[string]Service
	// Lease is how long a transaction is left to the router that began it; 5 s.
	Lease time.Duration
}

// Router is the whole tree.
type Router struct {
	servers Servers
	asked   map[string]*atomic.Uint64 // requests by server
	known   places
	token   func() string // a name for a subtree's directory
	lease   time.Duration
	// patience is how long a transaction waits for others, and for servers.
	patience time.Duration
}

// NewRouter is the tree that servers share.
func NewRouter(s Servers) (*Router, error) {
	if s.Service[s.Root] == nil {
		return nil, fmt.Errorf("the root's server %q: %w", s.Root, ErrServer)
	}
	asked := make(map[string]*atomic.Uint64)
	for name := range s.Service {
		if err := checkName(name); err != nil {
			return nil, err
		}
		asked[name] = new(atomic.Uint64)
	}
	s.Service = maps.Clone(s.Service)
	if s.Lease == 0 {
		s.Lease = lease
	}
	return &Router{servers: s, asked: asked, token: randomToken, lease: s.Lease, patience: 2 * s.Lease}, nil
}

// Asked is how many requests the router has sent to each server.
func (r *Router) Asked() map[string]uint64 {
	all := make(map[string]uint64)
	for name, n := range r.asked {
		all[name] = n.Load()
	}
	return all
}

func (r *Router) names() []string { return slices.Sorted(maps.Keys(r.servers.Service)) }

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, ":/=, ") || len(name) > 63 {
		return fmt.Errorf("a server %q: %w: 1 to 63 bytes without \":/=, \"", name, metadata.ErrInvalid)
	}
	return nil
}

// maxHops is how many virtual directories a command is led on by, before the map is
// believed to be a circle.
const maxHops = 64

// Do implements server.Service. Commands that follow each other and are for the same
// server are sent together.
func (r *Router) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	if metadata.RequestFrom(ctx).Again {
		return r.doAgain(ctx, commands)
	}
	return r.route(ctx, commands)
}

func (r *Router) route(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results := make([]metadata.Result, 0, len(commands))
	for len(commands) > 0 {
		if err := checkGlobal(commands[0]); err != nil {
			results, commands = append(results, metadata.Result{Err: err}), commands[1:]
			continue
		}
		at := r.commandPlace(commands[0])
		n := 1
		for n < len(commands) && isSinglePath(commands[0]) && isSinglePath(commands[n]) && checkGlobal(commands[n]) == nil && r.commandPlace(commands[n]) == at {
			n++
		}
		if !isSinglePath(commands[0]) {
			results = append(results, r.routeSpecial(ctx, commands[0]))
		} else {
			results = append(results, r.routeBatch(ctx, at, commands[:n])...)
		}
		commands = commands[n:]
	}
	return results
}

// isSinglePath tells whether a command is about one path.
func isSinglePath(c metadata.Command) bool {
	return c.Op != metadata.Move && c.Op != metadata.Delegate && c.Op != metadata.Adopt && c.Op != metadata.Find
}

// isReserved tells whether a path is where servers keep each other's subtrees: it is not in the
// whole tree.
func isReserved(path string) bool {
	return metadata.Under(path, metadata.Subtrees) || metadata.Under(path, metadata.Incoming)
}

// checkGlobal refuses commands that are not about the whole tree.
func checkGlobal(c metadata.Command) error {
	switch {
	case c.Op.Internal():
		return &metadata.Error{Path: c.Path, Err: fmt.Errorf("%w: %s is about a server's own tree", metadata.ErrInvalid, c.Op)}
	case !isReserved(c.Path) && !isReserved(c.To):
		return nil
	case c.Op.Changes():
		return &metadata.Error{Path: c.Path, Err: fmt.Errorf("%w name: %s and %s are the servers'", metadata.ErrInvalid, metadata.Subtrees, metadata.Incoming)}
	}
	return &metadata.Error{Path: c.Path, Err: metadata.ErrNotFound}
}

// routeBatch asks one server for several commands, and goes on alone with those that are
// elsewhere.
func (r *Router) routeBatch(ctx context.Context, at place, commands []metadata.Command) []metadata.Result {
	local := make([]metadata.Command, len(commands))
	for i, c := range commands {
		local[i] = at.localCommand(c)
	}
	results := r.send(ctx, at.server, local)
	for i, result := range results {
		results[i] = r.followResult(ctx, commands[i], at, result)
	}
	return results
}

// routeSpecial answers a command that is about more than one path.
func (r *Router) routeSpecial(ctx context.Context, c metadata.Command) metadata.Result {
	switch c.Op {
	case metadata.Find:
		return r.find(ctx, c)
	case metadata.Delegate:
		return r.delegate(ctx, c)
	case metadata.Adopt:
		return failure(c.Path, fmt.Errorf("%w: a subtree that is empty goes by rmdir", metadata.ErrInvalid))
	}
	return r.move(ctx, c)
}

func (r *Router) send(ctx context.Context, server string, commands []metadata.Command) []metadata.Result {
	if s := r.servers.Service[server]; s != nil {
		r.asked[server].Add(1)
		return s.Do(ctx, commands)
	}
	results := make([]metadata.Result, len(commands))
	for i := range results {
		results[i].Err = fmt.Errorf("%w: %w: %s", metadata.ErrUnavailable, ErrServer, metadata.Quote(server))
	}
	return results
}

func (r *Router) sendOne(ctx context.Context, server string, c metadata.Command) metadata.Result {
	return r.send(ctx, server, []metadata.Command{c})[0]
}

func failure(path string, err error) metadata.Result {
	return metadata.Result{Err: &metadata.Error{Path: path, Err: err}}
}

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

// Client is a Router with connections: it asks the server that has a path itself.
type Client struct {
	*Router
	clients []*client.Client
}

// Connect learns from any server, whose address is given, which servers there are. A server
// that has its tree alone is asked for everything.
func Connect(ctx context.Context, addr string, with ...client.Option) (*Client, error) {
	first := client.New(addr, with...)
	status, err := first.Status(ctx)
	if err != nil {
		first.Close()
		return nil, fmt.Errorf("learning which servers share the tree: %w", err)
	}
	c := &Client{clients: []*client.Client{first}}
	s := Servers{Root: status.Root, Service: make(map[string]Service)}
	for name, addrs := range status.Servers {
		own := client.NewOwn(addrs, with...)
		c.clients = append(c.clients, own)
		s.Service[name] = own
	}
	if len(status.Servers) == 0 {
		s = Servers{Root: standaloneName, Service: map[string]Service{standaloneName: first}}
	}
	if c.Router, err = NewRouter(s); err != nil {
		c.Close()
		return nil, fmt.Errorf("learning which servers share the tree: %w", err)
	}
	return c, nil
}

// standaloneName is the name of a server that has none.
const standaloneName = "server"

// Close closes connections that nobody uses.
func (c *Client) Close() {
	for _, one := range c.clients {
		one.Close()
	}
}
