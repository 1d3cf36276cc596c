package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"skerry/internal/base/linger"
	"skerry/systems/metadata/protocol"
)

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
