package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"skerry/internal/base/advice"
	"skerry/systems/consensus"
	"skerry/systems/consensus/ca"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/replica"
	"skerry/systems/metadata/store"
)

// Group is the replicas that a server is made of.
type Group struct {
	Cluster string // identity: replicas of another group are refused
	Name    string // of this replica
	// Members are all replicas, as NAME=ADDR; the same at each. Of one that joins, itself.
	Members []string
	// Join has a replica on an empty directory wait until the group takes it in.
	Join bool
}

var (
	// ErrGroup marks a group that cannot be.
	ErrGroup = errors.New("not a group of replicas")
	// ErrLayout means a directory of a server alone where a replica's was wanted, or the
	// other way round.
	ErrLayout = errors.New("the directory is of another kind of server")
)

// replicaDir is what a replica keeps, in its server's directory; aloneFile is what only a
// server without replicas has there.
const (
	replicaDir = "replica"
	aloneFile  = "version"
)

// log is what the store writes to, and tells about.
type log interface {
	changelog.Log
	Status() changelog.Status
}

// backend is a tree with what keeps it.
type backend struct {
	state   *store.State
	log     log
	replica *replica.Log // nil for a server alone
	credentials
}

func (o *Options) openBackend(ctx context.Context, who credentials) (backend, changelog.Recovery, error) {
	k := backend{state: store.NewState(), credentials: who}
	if o.Group == nil {
		if err := checkLayout(filepath.Join(o.Dir, replicaDir), "a replica's, give its --name and the --member of each"); err != nil {
			return k, changelog.Recovery{}, err
		}
		o.Journal.Log = o.Log
		j, r, err := changelog.Open(o.Dir, k.state, o.Journal)
		k.log = j
		return k, r, err
	}
	if err := checkLayout(filepath.Join(o.Dir, aloneFile), "that of a server without replicas, serve it without --member or give another --data"); err != nil {
		return k, changelog.Recovery{}, err
	}
	cfg, err := o.Group.config(who.id)
	if err != nil {
		return k, changelog.Recovery{}, err
	}
	l, r, err := replica.Open(ctx, filepath.Join(o.Dir, replicaDir), k.state, cfg, replica.Options{SnapshotBytes: o.Journal.SnapshotBytes, Log: o.Log})
	k.log, k.replica = l, l
	return k, r, err
}

// self is this replica's address for the others, "" where it is not among the members.
func (g *Group) self() string {
	for _, text := range g.Members {
		if addr, ok := strings.CutPrefix(text, g.Name+"="); ok {
			return addr
		}
	}
	return ""
}

// checkLayout refuses a directory that has what another kind of server left.
func checkLayout(path, what string) error {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = advice.With(fmt.Errorf("%s: %w", filepath.Dir(path), ErrLayout), "it is %s", what)
	}
	return err
}

// watch ends the server when the replica ends by itself; what it returns waits for that
// goroutine, once the context ended, and tells why the replica did.
func (k backend) watch(ctx context.Context, end context.CancelFunc) (why func() error) {
	if k.replica == nil {
		return func() error { return nil }
	}
	failed := make(chan error, 1)
	go func() {
		select {
		case <-ctx.Done():
			failed <- nil
		case <-k.replica.Done():
			failed <- k.replica.Err()
			end()
		}
	}()
	return func() error { return <-failed }
}

// config is the group as the log has it.
func (g *Group) config(id *ca.Identity) (consensus.Config, error) {
	c := consensus.Config{Cluster: g.Cluster, Join: g.Join}
	for _, text := range g.Members {
		name, addr, ok := strings.Cut(text, "=")
		if !ok || name == "" || addr == "" {
			return c, fmt.Errorf("%w: member %q is not NAME=ADDR", ErrGroup, text)
		}
		m := consensus.Member{ID: consensus.MemberID(name), Name: name, Addr: addr, Role: consensus.Voter}
		for _, other := range c.Members {
			if other.Name == name || other.Addr == addr {
				return c, fmt.Errorf("%w: members %q and %s=%s have a name or an address in common", ErrGroup, text, other.Name, other.Addr)
			}
		}
		c.Members = append(c.Members, m)
		if name == g.Name {
			c.Self = m
		}
	}
	if c.Self.ID == 0 {
		return c, advice.With(fmt.Errorf("%w: %q is not one of its members", ErrGroup, g.Name), "give this server's --name, which is that of one --member")
	}
	if g.Join {
		c.Members = nil
	}
	if id == nil {
		return c, nil
	}
	if id.Cluster != g.Cluster {
		return c, fmt.Errorf("%w: the certificate is for the cluster %q", ErrGroup, id.Cluster)
	}
	c.TLS, c.DialTLS = id.Server(nil, ca.Member), id.Client(nil, ca.Member)
	return c, nil
}
