package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/systems/metadata/protocol"
)

// StatusPoller asks servers that share a tree how they stand, each replica by itself.
type StatusPoller struct {
	patience time.Duration
	with     []Option

	mu       sync.Mutex
	replicas map[string][]*Client // by server
}

// watchPatience is how long a replica's status is waited for.
const watchPatience = 3 * time.Second

// NewStatusPoller is a watch of servers, whose addresses are given by name, those of replicas with
// commas between them.
func NewStatusPoller(servers map[string]string, with ...Option) *StatusPoller {
	w := &StatusPoller{replicas: make(map[string][]*Client), patience: watchPatience, with: with}
	for name, addrs := range servers {
		w.SetAddr(name, addrs)
	}
	return w
}

// SetAddr has the watch ask a server at other addresses from now on.
func (w *StatusPoller) SetAddr(name, addrs string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, replica := range w.replicas[name] {
		replica.Close()
	}
	var replicas []*Client
	for addr := range strings.SplitSeq(addrs, ",") {
		replicas = append(replicas, New(addr, w.with...))
	}
	w.replicas[name] = replicas
}

func (w *StatusPoller) servers() map[string][]*Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.replicas)
}

// Statuses is what each replica says, by server; where one leads, it is the first. Those that do
// not answer in time are left out.
func (w *StatusPoller) Statuses(ctx context.Context) map[string][]protocol.Status {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	var asked sync.WaitGroup
	var mu sync.Mutex
	all := make(map[string][]protocol.Status)
	for name, replicas := range w.servers() {
		for _, replica := range replicas {
			asked.Go(func() {
				s, err := replica.Status(ctx)
				if err != nil || s.Name != name {
					return // out of reach, or another server has its address
				}
				mu.Lock()
				defer mu.Unlock()
				if s.Group != nil && s.Group.Leader == s.Group.Self.ID {
					all[name] = append([]protocol.Status{s}, all[name]...)
				} else {
					all[name] = append(all[name], s)
				}
			})
		}
	}
	asked.Wait()
	return all
}

// Close closes connections that nobody uses.
func (w *StatusPoller) Close() {
	for _, replicas := range w.servers() {
		for _, replica := range replicas {
			replica.Close()
		}
	}
}

// Discover is a client of a server and, behind it, of all that share its tree, of which any
// answers: where one is lost, the next is asked.
func Discover(ctx context.Context, addr string, with ...Option) (*Client, error) {
	c := New(addr, with...)
	s, err := c.Status(ctx)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("learning which servers share the tree: %w", err)
	}
	all := c.currentReplicas()
	for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
		for one := range strings.SplitSeq(s.Servers[name], ",") {
			base := c.baseURL(one)
			if !slices.ContainsFunc(all, func(r *replica) bool { return r.base == base }) {
				all = append(all, newReplica(base))
			}
		}
	}
	c.replicas.Store(&all)
	return c, nil
}

// baseURL is an address as the beginning of URLs.
func (c *Client) baseURL(addr string) string {
	if !strings.Contains(addr, "://") {
		addr = c.scheme + addr
	}
	return strings.TrimRight(addr, "/")
}

var (
	// ErrRefused means that a group did not take a change of its members, and will not.
	ErrRefused = errors.New("the group refuses")
	// ErrNoMember means that a group has no replica of a name.
	ErrNoMember = errors.New("no such replica")
	// ErrToken means that a server asks for another token.
	ErrToken = errors.New("the server asks for a token that allows that")
)

// AddMember has a group of replicas take one in, known as name, that the others reach at an
// address. It returns once the group has agreed: the replica learns without a vote, and is
// given one when it has caught up. To ask twice is no error.
func (c *Client) AddMember(ctx context.Context, name, addr string) error {
	return c.changeMember(ctx, "add", protocol.Member{Name: name, Addr: addr})
}

// RemoveMember has a group forget a replica, which then ends by itself. Its name cannot be
// used again.
func (c *Client) RemoveMember(ctx context.Context, name string) error {
	return c.changeMember(ctx, "remove", protocol.Member{Name: name})
}

func (c *Client) changeMember(ctx context.Context, what string, m protocol.Member) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	text, status, err := c.exchange(ctx, &request{method: http.MethodPost, path: "/v1/members/" + what, body: body})
	switch {
	case err != nil:
		return err
	case status == http.StatusOK:
		return nil
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		err = ErrToken
	case status == http.StatusNotFound && json.Valid(text):
		err = ErrNoMember
	case status == http.StatusServiceUnavailable:
		err = ErrAnswer
	default:
		err = ErrRefused
	}
	var problem protocol.Result
	if json.Unmarshal(text, &problem) == nil && problem.Error != nil {
		return fmt.Errorf("%w: %s", err, problem.Error.Message)
	}
	return fmt.Errorf("%w: %d %.200q", err, status, text)
}

// votePoll is how often a group is asked whether a replica has its vote.
const votePoll = 50 * time.Millisecond

// AwaitVote waits until the group says that a replica has its vote.
func (c *Client) AwaitVote(ctx context.Context, name string) error {
	for {
		s, err := c.Status(ctx)
		if err == nil && s.Group != nil {
			for _, m := range s.Group.Members {
				if m.Name == name && m.Votes {
					return nil
				}
			}
		}
		if ended := linger.For(ctx, votePoll); ended != nil {
			return errors.Join(ended, err)
		}
	}
}
