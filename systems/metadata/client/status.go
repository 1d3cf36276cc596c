package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/systems/metadata/protocol"
)

// StatusPoller reads the status of every replica of the servers that share a tree.
type StatusPoller struct {
	patience time.Duration
	options  []Option

	mu       sync.Mutex
	replicas map[string][]*Client // by server
}

const watchPatience = 3 * time.Second

// NewStatusPoller returns a poller. servers has addresses by name, separated by commas for replicas.
func NewStatusPoller(servers map[string]string, options ...Option) *StatusPoller {
	w := &StatusPoller{replicas: make(map[string][]*Client), patience: watchPatience, options: options}
	for name, addrs := range servers {
		w.SetAddr(name, addrs)
	}
	return w
}

// SetAddr changes the addresses of a server.
func (w *StatusPoller) SetAddr(name, addrs string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, replica := range w.replicas[name] {
		replica.Close()
	}
	var replicas []*Client
	for addr := range strings.SplitSeq(addrs, ",") {
		replicas = append(replicas, New(addr, w.options...))
	}
	w.replicas[name] = replicas
}

func (w *StatusPoller) servers() map[string][]*Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.replicas)
}

// Statuses returns the statuses of replicas by server, the leader's first, without replicas that do not answer in time.
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
					return // unreachable, or another server has its address
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

func (w *StatusPoller) Close() {
	for _, replicas := range w.servers() {
		for _, replica := range replicas {
			replica.Close()
		}
	}
}

func (c *Client) baseURL(addr string) string {
	if !strings.Contains(addr, "://") {
		addr = c.scheme + addr
	}
	return strings.TrimRight(addr, "/")
}

var (
	// ErrRefused means that a group refuses a membership change.
	ErrRefused = errors.New("the group refuses the change")
	// ErrNoMember means that a group has no replica with the name.
	ErrNoMember = errors.New("no such replica")
	// ErrToken means that the server requires another token.
	ErrToken = errors.New("the server requires another token")
)

// AddMember adds a replica, which the others reach at addr, to a group. It returns after the group has agreed: the
// replica learns without a vote, and gets its vote when it has caught up. Repeating the call is not an error.
func (c *Client) AddMember(ctx context.Context, name, addr string) error {
	return c.changeMember(ctx, "add", protocol.Member{Name: name, Addr: addr})
}

// RemoveMember removes a replica from a group; the replica then stops. Its name cannot be used again.
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

const votePoll = 50 * time.Millisecond

// AwaitVote waits until the group reports that a replica has its vote.
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
