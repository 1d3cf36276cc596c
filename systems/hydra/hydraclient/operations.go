package hydraclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/framing"
)

func tablePath(table, below string) string {
	return "/v1/tables/" + segment(table) + below
}

func rowPath(table, key string) string { return tablePath(table, "/rows/"+segment(key)) }

// segment escapes a path segment. "." and ".." would be relative paths.
func segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

func newRequest(method, path string, write bool, options []Option) *request {
	q := &request{method: method, path: path, write: write}
	for _, o := range options {
		o(q)
	}
	return q
}

func encodeValue(value any) ([]byte, error) {
	switch v := value.(type) {
	case json.RawMessage:
		return v, nil
	case []byte:
		return v, nil
	}
	b, err := command.EncodeJSON(value)
	if err != nil {
		return nil, fmt.Errorf("%w: encoding the value: %w", ErrBadRequest, err)
	}
	return b, nil
}

// Get reads a row, or returns ErrNotFound.
func (c *Client) Get(ctx context.Context, table, key string, options ...Option) (api.Row, error) {
	var row api.Row
	q := newRequest(http.MethodGet, rowPath(table, key), false, options)
	if c.endpoints != nil {
		q.frame = &framing.Request{Operation: framing.Get, Table: []byte(table), Key: []byte(key)}
	}
	err := c.do(ctx, q, &row)
	return row, err
}

// Put replaces a row. The value is a JSON object: json.RawMessage, []byte, or a value that marshals to one.
func (c *Client) Put(ctx context.Context, table, key string, value any, options ...Option) (api.Written, error) {
	q := newRequest(http.MethodPut, rowPath(table, key), true, options)
	if c.endpoints == nil {
		return c.write(ctx, q, value)
	}
	text, err := encodeValue(value)
	if err != nil {
		return api.Written{}, err
	}
	t := api.Transaction{RequestID: q.requestID, Writes: []api.Write{{Do: command.Put, Table: table, Key: key, Value: text}}}
	q.frame = &framing.Request{Operation: framing.Transact, Transaction: t.Append(nil)}
	return c.write(ctx, q, json.RawMessage(text))
}

// Merge sets fields of an existing row; null removes a field.
func (c *Client) Merge(ctx context.Context, table, key string, fields any, options ...Option) (api.Written, error) {
	return c.writeExisting(ctx, newRequest(http.MethodPatch, rowPath(table, key), true, options),
		api.Write{Do: command.Merge, Table: table, Key: key}, fields)
}

// Delete removes a row, or returns ErrNotFound.
func (c *Client) Delete(ctx context.Context, table, key string, options ...Option) (api.Written, error) {
	return c.writeExisting(ctx, newRequest(http.MethodDelete, rowPath(table, key), true, options),
		api.Write{Do: command.Delete, Table: table, Key: key}, nil)
}

// writeExisting writes to a row that must exist. On a stream it is a transaction with a check.
func (c *Client) writeExisting(ctx context.Context, q *request, w api.Write, value any) (api.Written, error) {
	if c.endpoints == nil {
		return c.write(ctx, q, value)
	}
	if value != nil {
		text, err := encodeValue(value)
		if err != nil {
			return api.Written{}, err
		}
		w.Value, value = text, json.RawMessage(text)
	}
	t := api.Transaction{RequestID: q.requestID, Checks: []api.Check{{Table: w.Table, Key: w.Key, Is: command.Exists}}, Writes: []api.Write{w}}
	q.frame, q.existing = &framing.Request{Operation: framing.Transact, Transaction: t.Append(nil)}, true
	return c.write(ctx, q, value)
}

// Transact executes a transaction, or returns ErrCheckFailed.
func (c *Client) Transact(ctx context.Context, t api.Transaction, options ...Option) (api.Written, error) {
	if t.RequestID != "" {
		options = append(options, RequestID(t.RequestID))
	}
	q := newRequest(http.MethodPost, "/v1/transactions", true, options)
	if c.endpoints != nil {
		t.RequestID = q.requestID
		q.frame = &framing.Request{Operation: framing.Transact, Transaction: t.Append(nil)}
	}
	return c.write(ctx, q, t)
}

func (c *Client) write(ctx context.Context, q *request, value any) (api.Written, error) {
	q.value = value
	var w api.Written
	err := c.do(ctx, q, &w)
	return w, err
}

// Page selects the rows of a scan, ordered by the bytes of keys.
type Page struct {
	From   string // first key
	After  string // last key of the previous page
	Prefix string
	Limit  int // 100 if 0, at most 10,000
}

func (c *Client) Scan(ctx context.Context, table string, p Page, options ...Option) (api.Rows, error) {
	q := newRequest(http.MethodGet, tablePath(table, "/rows"), false, options)
	for _, v := range []struct{ name, value string }{{"from", p.From}, {"after", p.After}, {"prefix", p.Prefix}} {
		if v.value != "" {
			q.query = append(q.query, v.name+"="+url.QueryEscape(v.value))
		}
	}
	if p.Limit > 0 {
		q.query = append(q.query, "limit="+strconv.Itoa(p.Limit))
	}
	var rows api.Rows
	err := c.do(ctx, q, &rows)
	return rows, err
}

func (c *Client) Count(ctx context.Context, table string, options ...Option) (int64, error) {
	var n api.Count
	err := c.do(ctx, newRequest(http.MethodGet, tablePath(table, "/count"), false, options), &n)
	return n.Rows, err
}

func (c *Client) Tables(ctx context.Context, options ...Option) ([]string, error) {
	var t api.Tables
	err := c.do(ctx, newRequest(http.MethodGet, "/v1/tables", false, options), &t)
	return t.Tables, err
}

// CreateTable creates a table, if missing.
func (c *Client) CreateTable(ctx context.Context, table string, options ...Option) error {
	_, err := c.write(ctx, newRequest(http.MethodPut, tablePath(table, ""), true, options), nil)
	return err
}

// DropTable removes a table and its rows, if it exists.
func (c *Client) DropTable(ctx context.Context, table string, options ...Option) error {
	_, err := c.write(ctx, newRequest(http.MethodDelete, tablePath(table, ""), true, options), nil)
	return err
}

func (c *Client) ClearTable(ctx context.Context, table string, options ...Option) error {
	_, err := c.write(ctx, newRequest(http.MethodPost, tablePath(table, "/clear"), true, options), nil)
	return err
}

// Status returns the view of the reached member.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	var s api.Status
	err := c.do(ctx, newRequest(http.MethodGet, "/status", false, nil), &s)
	return s, err
}

// Ready returns nil if the reached member serves.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, newRequest(http.MethodGet, "/readyz", false, nil), nil)
}

func (c *Client) Members(ctx context.Context) ([]api.Member, error) {
	var m api.Members
	err := c.do(ctx, newRequest(http.MethodGet, "/v1/members", false, nil), &m)
	return m.Members, err
}

// AddMember adds a learner, which is promoted once it has caught up. The answer has its ID.
func (c *Client) AddMember(ctx context.Context, m api.Member) (api.Member, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	q := newRequest(http.MethodPost, "/v1/members", true, nil)
	q.value = json.RawMessage(body)
	err = c.do(ctx, q, &m)
	return m, err
}

// RemoveMember removes a member, if it exists.
func (c *Client) RemoveMember(ctx context.Context, id uint64) error {
	return c.do(ctx, newRequest(http.MethodDelete, "/v1/members/"+strconv.FormatUint(id, 10), true, nil), nil)
}

// TransferLeader moves leadership to a member.
func (c *Client) TransferLeader(ctx context.Context, to string) error {
	q := newRequest(http.MethodPost, "/v1/leader", true, nil)
	q.value = api.LeaderChange{To: to}
	return c.do(ctx, q, nil)
}
