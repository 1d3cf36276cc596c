// Package cluster is one directory tree on several servers.
//
// Each server, which may be a group of replicas, has its own tree. One server has the root. A virtual directory in one
// tree stands for a directory in another: its owner is "SERVER:/PATH". The map of subtrees to servers is therefore part of the
// trees. A subtree does not know its place in the shared tree:
//
//	root's tree        g2's tree
//	/                  /.subtrees/
//	├── home ────────► │   └── 5f1c…/     is /home
//	└── etc/           │       └── ann/   is /home/ann
//
// A Router answers commands on the shared tree by sending commands to servers. It learns and caches the map from the
// virtual directories that it meets. An outdated cache is harmless, because the name of a subtree's directory is never
// reused: a server that no longer has the directory says so, and the router looks again.
//
// Every server runs a Router. A client with its own Router goes to the right server at once.
package cluster

import (
	"cmp"
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

var (
	ErrServer = errors.New("no such server")
	// ErrCircle means that virtual directories lead to each other.
	ErrCircle = errors.New("virtual directories form a loop")
)

// Servers are the servers that share a tree.
type Servers struct {
	Root string // server of "/"
	// Service has an entry for each server.
	Service map[string]metadata.Service
	// Lease is the time after which servers end a transaction that its router abandoned. Default: 5 s.
	Lease time.Duration
}

// Router answers commands on the shared tree.
type Router struct {
	servers Servers
	asked   map[string]*atomic.Uint64 // requests by server
	known   places
	token   func() string // names a new subtree's directory
	lease   time.Duration
	// patience is the maximum wait of a transaction for locks and servers.
	patience time.Duration
}

func NewRouter(s Servers) (*Router, error) {
	if s.Service[s.Root] == nil {
		return nil, fmt.Errorf("root server %q: %w", s.Root, ErrServer)
	}
	asked := make(map[string]*atomic.Uint64)
	for name := range s.Service {
		if err := checkName(name); err != nil {
			return nil, err
		}
		asked[name] = new(atomic.Uint64)
	}
	s.Service = maps.Clone(s.Service)
	s.Lease = cmp.Or(s.Lease, lease)
	return &Router{servers: s, asked: asked, token: randomToken, lease: s.Lease, patience: 2 * s.Lease}, nil
}

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
		return fmt.Errorf("server name %q: %w: must have 1 to 63 bytes without \":/=, \"", name, metadata.ErrInvalid)
	}
	return nil
}

// maxHops is the number of virtual directories that a command follows before the map counts as circular.
const maxHops = 64

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
		for n < len(commands) && isSinglePath(commands[0]) && isSinglePath(commands[n]) && checkGlobal(commands[n]) == nil &&
			r.commandPlace(commands[n]) == at {
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

func isSinglePath(c metadata.Command) bool {
	return c.Op != metadata.Move && c.Op != metadata.Delegate && c.Op != metadata.Adopt && c.Op != metadata.Find
}

func isReserved(path string) bool {
	return metadata.Under(path, metadata.Subtrees) || metadata.Under(path, metadata.Incoming)
}

func checkGlobal(c metadata.Command) error {
	switch {
	case c.Op.Internal():
		return &metadata.Error{Path: c.Path, Err: fmt.Errorf("%w: %s works only on a server's own tree", metadata.ErrInvalid, c.Op)}
	case !isReserved(c.Path) && !isReserved(c.To):
		return nil
	case c.Op.Changes():
		return &metadata.Error{Path: c.Path, Err: fmt.Errorf("%w name: %s and %s are reserved", metadata.ErrInvalid,
			metadata.Subtrees, metadata.Incoming)}
	}
	return &metadata.Error{Path: c.Path, Err: metadata.ErrNotFound}
}

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

func (r *Router) routeSpecial(ctx context.Context, c metadata.Command) metadata.Result {
	switch c.Op {
	case metadata.Find:
		return r.find(ctx, c)
	case metadata.Delegate:
		return r.delegate(ctx, c)
	case metadata.Adopt:
		return failure(c.Path, fmt.Errorf("%w: use rmdir to remove an empty subtree", metadata.ErrInvalid))
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

// A repeated change, whose first router hung, may have been made on any server. One record of one log decides that: the
// log of the server that had the changed entry, or of the transaction's coordinator. That server remembers the change's
// identity. So the router asks all servers, and makes the change only if none remembers it. A first request that is still
// on its way meets its own identity, or loses its transaction's locks:
//
//  1. Router A has prepared a move on g1, and hangs.
//  2. The client repeats the move on router B. No server remembers it. B waits for A's locks until A's lease
//     expires.
//  3. A resumes and commits. If its transaction was ended, nothing happens. If A was first, B's move fails, and B
//     asks all servers again.

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

// recallChange asks all servers whether a change was made. If that is unknown, known is true and the result has an error.
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
	return metadata.Result{Err: fmt.Errorf("%w: the change may or may not have been made: %w", metadata.ErrUnavailable, failed)}, true
}

func (r *Router) eachServer(names []string, do func(i int, name string) error) error {
	return r.parallel(names, func(name string) error { return do(slices.Index(names, name), name) })
}

// Seen returns the servers' log positions as far as this router knows them.
func (r *Router) Seen() metadata.Seen {
	all := make(metadata.Seen)
	for _, s := range r.servers.Service {
		if s, ok := s.(interface{ Seen() metadata.Seen }); ok {
			all.Add(s.Seen())
		}
	}
	return all
}

// Client is a Router with its own connections.
type Client struct {
	*Router
	clients []*client.Client
}

// Connect returns a client of all servers that share the tree of the server at addr.
func Connect(ctx context.Context, addr string, options ...client.Option) (*Client, error) {
	first := client.New(addr, options...)
	status, err := first.Status(ctx)
	if err != nil {
		first.Close()
		return nil, fmt.Errorf("reading the list of servers: %w", err)
	}
	c := &Client{clients: []*client.Client{first}}
	s := Servers{Root: status.Root, Service: make(map[string]metadata.Service)}
	for name, addrs := range status.Servers {
		own := client.NewOwn(addrs, options...)
		c.clients = append(c.clients, own)
		s.Service[name] = own
	}
	if len(status.Servers) == 0 {
		s = Servers{Root: standaloneName, Service: map[string]metadata.Service{standaloneName: first}}
	}
	if c.Router, err = NewRouter(s); err != nil {
		c.Close()
		return nil, fmt.Errorf("reading the list of servers: %w", err)
	}
	return c, nil
}

const standaloneName = "server"

func (c *Client) Close() {
	for _, one := range c.clients {
		one.Close()
	}
}
