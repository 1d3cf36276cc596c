package hydraclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"skerry/internal/base/advice"
	"skerry/systems/hydra/api"
)

// Error is an error answer of a member.
type Error struct {
	api.Problem
	Status     int
	Endpoint   string
	RetryAfter time.Duration
	sentinel   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s answered %d %s: %s", e.Endpoint, e.Status, e.Code, e.Message)
}

// Unwrap returns the sentinel error of the code.
func (e *Error) Unwrap() error { return e.sentinel }

var sentinels = map[string]error{
	api.CodeBadRequest: ErrBadRequest, api.CodeUnauthorized: ErrUnauthorized, api.CodeForbidden: ErrUnauthorized,
	api.CodeForeignHost: ErrUnauthorized,
	api.CodeNotFound:    ErrNotFound, api.CodeUnknownTable: ErrUnknownTable, api.CodeCheckFailed: ErrCheckFailed,
	api.CodeBadField: ErrCheckFailed, api.CodeTooLarge: ErrTooLarge, api.CodeMisdirected: ErrUnavailable,
	api.CodeUnavailable: ErrUnavailable, api.CodeOverloaded: ErrOverloaded, api.CodeDraining: ErrUnavailable,
	api.CodeInDoubt: ErrInDoubt, api.CodeNotReached: ErrNotReached, api.CodeInternal: ErrInDoubt,
}

// do executes q at the current endpoint. While the operation was not executed, or is idempotent, do
// repeats it at the other endpoints, once each. The answer is decoded into into, unless nil.
func (c *Client) do(ctx context.Context, q *request, into any) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.config.Timeout)
		defer cancel()
	}
	c.applyDefaults(q)
	n := len(c.config.Endpoints)
	if c.current.Load() != 0 && int64(c.now()) > c.failbackAt.Load() {
		c.current.Store(0)
	}
	at := int(c.current.Load())
	for try := 1; ; try++ {
		err := errNoStream
		if q.frame != nil && c.endpoints != nil {
			err = c.sendStream(ctx, c.endpoints[at], q, into)
		}
		if errors.Is(err, errNoStream) {
			err = c.sendHTTP(ctx, c.config.Endpoints[at], q, into)
		}
		if err == nil || !isRetriable(err, q) {
			return err
		}
		if try >= n || ctx.Err() != nil {
			return err
		}
		at = (at + 1) % n
		c.current.Store(int32(at))
		c.failbackAt.Store(int64(c.now() + failbackAfter))
		c.retries.Add(1)
		if q.retries != nil {
			q.retries.Add(1)
		}
	}
}

func (c *Client) applyDefaults(q *request) {
	if q.write {
		if q.ack == "" {
			q.ack = c.config.Ack
		}
		if q.ack != "" && q.ack != api.Committed {
			q.query = append(q.query, "ack="+string(q.ack))
		}
		return
	}
	if q.read == "" {
		q.read, q.staleness = c.config.Read, c.config.Staleness
	}
	if q.read != "" && q.read != api.Linearizable {
		q.query = append(q.query, "read="+string(q.read))
	}
	if q.read == api.Bounded {
		q.query = append(q.query, "max_staleness_ms="+strconv.FormatInt(q.staleness.Milliseconds(), 10))
	}
}

func isRetriable(err error, q *request) bool {
	var e *Error
	if errors.As(err, &e) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrOverloaded) && !errors.Is(err, ErrInDoubt) {
		return false
	}
	if errors.Is(err, ErrInDoubt) {
		return !q.write || q.requestID != ""
	}
	return true
}

func (c *Client) sendHTTP(ctx context.Context, endpoint string, q *request, into any) error {
	var body io.Reader
	if q.value != nil {
		text, err := encodeValue(q.value)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.url(endpoint, q), body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	if c.bearer != "" {
		r.Header["Authorization"] = []string{c.bearer}
	}
	if q.value != nil {
		r.Header["Content-Type"] = []string{"application/json"}
	}
	if q.requestID != "" {
		r.Header[api.HeaderRequestID] = []string{q.requestID}
	}
	answer, err := c.http.RoundTrip(r)
	if err != nil {
		return transportError(endpoint, q, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return transportError(endpoint, q, err)
	}
	if q.meta != nil {
		*q.meta = parseMeta(answer.Header)
	}
	if answer.StatusCode/100 != 2 {
		return responseError(endpoint, answer, text)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: decoding the answer of %s: %w", ErrInDoubt, endpoint, err)
	}
	return nil
}

func transportError(endpoint string, q *request, err error) error {
	is := ErrInDoubt
	if !q.write || isNeverSent(err) {
		is = ErrUnavailable
	}
	return fmt.Errorf("%s %s at %s: %w: %w", q.method, q.path, endpoint, is, err)
}

func isNeverSent(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &op) && op.Op == "dial" ||
		strings.Contains(err.Error(), "tls: ") // failed handshake
}

func responseError(endpoint string, answer *http.Response, text []byte) error {
	e := &Error{Status: answer.StatusCode, Endpoint: endpoint}
	if err := json.Unmarshal(text, &e.Problem); err != nil || e.Code == "" {
		e.Problem = api.Problem{Code: api.CodeInternal, Message: strings.TrimSpace(string(text[:min(len(text), 200)]))}
		if answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests {
			e.Code = api.CodeUnavailable
		}
	}
	if s, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e.classify()
}

func (e *Error) classify() error {
	if e.sentinel = sentinels[e.Code]; e.sentinel == nil {
		e.sentinel = ErrInDoubt
	}
	if e.Advice != "" {
		return advice.With(e, "%s", e.Advice)
	}
	return e
}

func parseMeta(h http.Header) Meta {
	m := Meta{Member: h.Get(api.HeaderMember), Cloud: h.Get(api.HeaderCloud), Forwarded: h.Get(api.HeaderForwarded), Staleness: -1}
	m.Version, _ = strconv.ParseUint(h.Get(api.HeaderVersion), 10, 64) // 0 if missing
	m.Applied, _ = strconv.ParseUint(h.Get(api.HeaderApplied), 10, 64)
	m.Lag, _ = strconv.ParseUint(h.Get(api.HeaderLag), 10, 64)
	if ms, err := strconv.ParseFloat(h.Get(api.HeaderStaleness), 64); err == nil {
		m.Staleness = time.Duration(ms * float64(time.Millisecond))
	}
	return m
}
