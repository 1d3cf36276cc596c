package hydraclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"skerry/systems/hydra/api"
)

// Status is the view of the member that is reached.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	var s api.Status
	err := c.do(ctx, build(http.MethodGet, "/status", false, nil), &s)
	return s, err
}

// Ready returns nil when the member that is reached serves.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, build(http.MethodGet, "/readyz", false, nil), nil)
}

// Members lists the members as the cluster has agreed on them.
func (c *Client) Members(ctx context.Context) ([]api.Member, error) {
	var m api.Members
	err := c.do(ctx, build(http.MethodGet, "/v1/members", false, nil), &m)
	return m.Members, err
}

// AddMember makes a member known: as a learner, which is promoted once it has caught up.
// The answer holds its ID.
func (c *Client) AddMember(ctx context.Context, m api.Member) (api.Member, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	q := build(http.MethodPost, "/v1/members", true, nil)
	q.value = json.RawMessage(body)
	err = c.do(ctx, q, &m)
	return m, err
}

// RemoveMember ends a membership; that there is none is no error.
func (c *Client) RemoveMember(ctx context.Context, id uint64) error {
	return c.do(ctx, build(http.MethodDelete, "/v1/members/"+strconv.FormatUint(id, 10), true, nil), nil)
}

// TransferLeader has the leader hand over to a member.
func (c *Client) TransferLeader(ctx context.Context, to string) error {
	q := build(http.MethodPost, "/v1/leader", true, nil)
	q.value = api.LeaderChange{To: to}
	return c.do(ctx, q, nil)
}
