package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"skerry/internal/base/advice"
	"skerry/systems/consensus"
	"skerry/systems/consensus/ca"
	"skerry/systems/metadata"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/protocol"
	"skerry/systems/metadata/replica"
	"skerry/systems/metadata/store"
)

// ReplicaGroup is the group of replicas that forms a server.
type ReplicaGroup struct {
	Cluster string // identity of the group: replicas of other groups are refused
	Name    string // of this replica
	// Members has all replicas as NAME=ADDR, the same list at each. A joining replica lists only itself.
	Members []string
	// Join makes a replica with an empty directory wait until the group adds it.
	Join bool
}

var (
	ErrGroup = errors.New("invalid group of replicas")
	// ErrLayout means that a replica finds the directory of a server without replicas, or vice versa.
	ErrLayout = errors.New("directory belongs to another kind of server")
)

// replicaDir is the directory of a replica's data. Only servers without replicas have aloneFile.
const (
	replicaDir = "replica"
	aloneFile  = "version"
)

type log interface {
	changelog.Log
	Status() protocol.JournalStatus
}

type backend struct {
	state   *store.State
	log     log
	replica *replica.Log // nil without replicas
	credentials
}

func (o *Options) openBackend(ctx context.Context, creds credentials) (backend, protocol.LogRecovery, error) {
	k := backend{state: store.NewState(), credentials: creds}
	if o.Group == nil {
		if err := checkLayout(filepath.Join(o.Dir, replicaDir),
			"it belongs to a replica: give its --name and the --member flags of all replicas"); err != nil {
			return k, protocol.LogRecovery{}, err
		}
		o.Journal.Log = o.Log
		j, r, err := changelog.Open(o.Dir, k.state, o.Journal)
		k.log = j
		return k, r, err
	}
	if err := checkLayout(filepath.Join(o.Dir, aloneFile),
		"it belongs to a server without replicas: omit --member, or give another --data directory"); err != nil {
		return k, protocol.LogRecovery{}, err
	}
	cfg, err := o.Group.config(creds.id)
	if err != nil {
		return k, protocol.LogRecovery{}, err
	}
	l, r, err := replica.Open(ctx, filepath.Join(o.Dir, replicaDir), k.state, cfg,
		replica.Options{SnapshotBytes: o.Journal.SnapshotBytes, Log: o.Log})
	k.log, k.replica = l, l
	return k, r, err
}

func (g *ReplicaGroup) self() string {
	for _, text := range g.Members {
		if addr, ok := strings.CutPrefix(text, g.Name+"="); ok {
			return addr
		}
	}
	return ""
}

func checkLayout(path, what string) error {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = advice.With(fmt.Errorf("%s: %w", filepath.Dir(path), ErrLayout), "%s", what)
	}
	return err
}

// watch stops the server when the replica stops. why waits for that, after the context's end, and returns its error.
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

func (g *ReplicaGroup) config(id *ca.Identity) (consensus.Config, error) {
	c := consensus.Config{Cluster: g.Cluster, Join: g.Join}
	for _, text := range g.Members {
		name, addr, ok := strings.Cut(text, "=")
		if !ok || name == "" || addr == "" {
			return c, fmt.Errorf("%w: member %q is not NAME=ADDR", ErrGroup, text)
		}
		m := consensus.Member{ID: consensus.MemberID(name), Name: name, Addr: addr, Role: consensus.Voter}
		for _, other := range c.Members {
			if other.Name == name || other.Addr == addr {
				return c, fmt.Errorf("%w: members %q and %s=%s share a name or an address", ErrGroup, text, other.Name, other.Addr)
			}
		}
		c.Members = append(c.Members, m)
		if name == g.Name {
			c.Self = m
		}
	}
	if c.Self.ID == 0 {
		return c, advice.With(fmt.Errorf("%w: %q is not a member", ErrGroup, g.Name), "set --name to the name of one --member")
	}
	if g.Join {
		c.Members = nil
	}
	if id == nil {
		return c, nil
	}
	if id.Cluster != g.Cluster {
		return c, fmt.Errorf("%w: the certificate is for cluster %q", ErrGroup, id.Cluster)
	}
	c.TLS, c.DialTLS = id.Server(nil, ca.Member), id.Client(nil, ca.Member)
	return c, nil
}

const maxMember = 4 << 10

func (k backend) routes(log *slog.Logger) map[string]http.HandlerFunc {
	if k.replica == nil {
		return nil
	}
	return members{node: k.replica.Node(), checkCertificate: k.checkCertificate, log: log}.routes()
}

type members struct {
	node             *consensus.Node
	checkCertificate func(ctx context.Context, name, addr string) error
	log              *slog.Logger
}

func (m members) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /v1/members/add":    m.handle(m.add),
		"POST /v1/members/remove": m.handle(m.remove),
	}
}

func (m members) handle(change func(*http.Request, protocol.Member) (status int, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked protocol.Member
		d := json.NewDecoder(io.LimitReader(r.Body, maxMember))
		d.DisallowUnknownFields()
		status, err := http.StatusBadRequest, d.Decode(&asked)
		if err == nil && asked.Name == "" {
			err = fmt.Errorf("%w: replica name missing", metadata.ErrInvalid)
		}
		if err == nil {
			status, err = change(r, asked)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(protocol.EncodeResult(metadata.Result{Err: err})); err != nil {
			m.log.Debug("cannot send the answer to a membership change", "error", err)
		}
	}
}

func (m members) memberNamed(name string) (consensus.Member, bool) {
	for _, o := range m.node.Members() {
		if o.Name == name {
			return o, true
		}
	}
	return consensus.Member{}, false
}

// add adds a replica as a learner. The leader gives it a vote when it has caught up.
func (m members) add(r *http.Request, asked protocol.Member) (int, error) {
	if asked.Addr == "" {
		return http.StatusBadRequest, fmt.Errorf("%w: replica address missing", metadata.ErrInvalid)
	}
	if there, ok := m.memberNamed(asked.Name); ok {
		if there.Addr == asked.Addr {
			return http.StatusOK, nil
		}
		return http.StatusConflict, fmt.Errorf("replica %s %w, at %s", asked.Name, metadata.ErrExists, there.Addr)
	}
	if err := m.checkCertificate(r.Context(), asked.Name, asked.Addr); err != nil {
		return http.StatusConflict, fmt.Errorf("%w: %w", metadata.ErrForbidden, err)
	}
	one := consensus.Member{ID: consensus.MemberID(asked.Name), Name: asked.Name, Addr: asked.Addr, Role: consensus.Voter}
	return changeStatus(m.node.Add(r.Context(), one))
}

// remove removes a replica. A leader hands over first, so that no request waits for an election.
func (m members) remove(r *http.Request, asked protocol.Member) (int, error) {
	gone, ok := m.memberNamed(asked.Name)
	if !ok {
		return http.StatusNotFound, fmt.Errorf("replica %s: %w", asked.Name, metadata.ErrNotFound)
	}
	if lead, ok := m.node.Leader(); ok && lead.ID == gone.ID {
		m.handOver(r, gone.ID)
	}
	return changeStatus(m.node.Remove(r.Context(), gone.ID))
}

// handOver transfers leadership to another connected replica. Without one, an election follows.
func (m members) handOver(r *http.Request, from uint64) {
	for _, o := range m.node.Status().Members {
		if o.ID == from || !o.Votes || !o.Connected && o.ID != m.node.Self().ID {
			continue
		}
		if err := m.node.Transfer(r.Context(), o.ID); err != nil {
			m.log.Warn("cannot transfer leadership", "to", o.Name, "error", err)
		}
		return
	}
}

// changeStatus returns the HTTP status of a membership change. A change in doubt can be repeated.
func changeStatus(err error) (int, error) {
	switch {
	case err == nil:
		return http.StatusOK, nil
	case errors.Is(err, consensus.ErrNotMember):
		return http.StatusNotFound, fmt.Errorf("%w: %w", metadata.ErrNotFound, err)
	}
	return http.StatusServiceUnavailable, fmt.Errorf("%w: %w", metadata.ErrUnavailable, err)
}
