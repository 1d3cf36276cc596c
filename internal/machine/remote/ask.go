package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"skerry/internal/machine/rpc"
)

// openCall is the start of a response and the stream that follows.
type openCall struct {
	first    json.RawMessage
	rest     *bufio.Reader
	response *http.Response
}

func (a *openCall) Close() error { return a.response.Body.Close() }

// beginCall sends a request, with a stream unless nil, and returns when the response has begun.
func (m *Machine) beginCall(ctx context.Context, path string, of rpc.CallTarget, q any, stream io.Reader) (*openCall, error) {
	doing := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", " ")
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", m.name, doing, err)
	}
	request, err := m.newRequest(ctx, path, of, q, stream)
	if err != nil {
		return nil, fmt.Errorf("%s: encode request %s: %w", m.name, doing, err)
	}
	response, err := m.transport.RoundTrip(request)
	if err != nil {
		return nil, m.callError(ctx, doing, err)
	}
	a := &openCall{response: response}
	var begun rpc.Response
	decoder := json.NewDecoder(response.Body)
	if err := decoder.Decode(&begun); err != nil {
		a.Close()
		return nil, m.callError(ctx, doing, err)
	}
	if err := begun.Error.Err(); err != nil {
		a.Close()
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	a.first, a.rest = begun.Answer, bufio.NewReader(io.MultiReader(decoder.Buffered(), response.Body))
	return a, nil
}

func (m *Machine) newRequest(ctx context.Context, path string, of rpc.CallTarget, q any, stream io.Reader) (*http.Request, error) {
	text, err := json.Marshal(q)
	if err == nil {
		text, err = json.Marshal(rpc.Request{Target: of, Params: text})
	}
	if err != nil {
		return nil, err
	}
	var body io.Reader = bytes.NewReader(append(text, '\n'))
	switch s := stream.(type) {
	case nil:
	case io.ReadCloser: // which the end of the call closes, so that no caller waits for it
		body = &prefixedStream{io.MultiReader(body, s), s}
	default:
		body = io.MultiReader(body, s)
	}
	return http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, body)
}

// prefixedStream prepends bytes to a stream.
type prefixedStream struct {
	io.Reader
	io.Closer
}

// callError returns the error of a call without a response.
func (m *Machine) callError(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %s: %w", m.name, doing, ctx.Err())
	}
	return m.lostError(doing, err)
}

// skipNewline skips the newline after the response's first value.
func (a *openCall) skipNewline() error {
	b, err := a.rest.ReadByte()
	if err == nil && b != '\n' {
		err = errors.New("malformed response: stream does not begin with a newline")
	}
	return err
}

// callResult makes a call without streams.
func callResult[A any](ctx context.Context, m *Machine, path string, of rpc.CallTarget, q any) (a A, err error) {
	got, err := m.beginCall(ctx, path, of, q, nil)
	if err != nil {
		return a, err
	}
	defer got.Close()
	if err := json.Unmarshal(got.first, &a); err != nil {
		return a, fmt.Errorf("%s: decode response of %s: %w", m.name, path, err)
	}
	return a, nil
}

// callEmpty makes a call without a result.
func callEmpty(ctx context.Context, m *Machine, path string, of rpc.CallTarget, q any) error {
	_, err := callResult[rpc.Empty](ctx, m, path, of, q)
	return err
}
