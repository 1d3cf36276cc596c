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

// answer is the beginning of an answer, and the stream that follows.
type answer struct {
	first    json.RawMessage
	rest     *bufio.Reader
	response *http.Response
}

func (a *answer) Close() error { return a.response.Body.Close() }

// begin asks, with a stream where that is not nil, and returns when the answer has begun.
func (m *Machine) begin(ctx context.Context, path string, of rpc.Of, q any, stream io.Reader) (*answer, error) {
	doing := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", " ")
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", m.name, doing, err)
	}
	request, err := m.request(ctx, path, of, q, stream)
	if err != nil {
		return nil, fmt.Errorf("%s: asking to %s: %w", m.name, doing, err)
	}
	response, err := m.transport.RoundTrip(request)
	if err != nil {
		return nil, m.failed(ctx, doing, err)
	}
	a := &answer{response: response}
	var begun rpc.Response
	decoder := json.NewDecoder(response.Body)
	if err := decoder.Decode(&begun); err != nil {
		a.Close()
		return nil, m.failed(ctx, doing, err)
	}
	if err := begun.Error.Err(); err != nil {
		a.Close()
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	a.first, a.rest = begun.Answer, bufio.NewReader(io.MultiReader(decoder.Buffered(), response.Body))
	return a, nil
}

func (m *Machine) request(ctx context.Context, path string, of rpc.Of, q any, stream io.Reader) (*http.Request, error) {
	text, err := json.Marshal(q)
	if err == nil {
		text, err = json.Marshal(rpc.Request{Of: of, Ask: text})
	}
	if err != nil {
		return nil, err
	}
	var body io.Reader = bytes.NewReader(append(text, '\n'))
	switch s := stream.(type) {
	case nil:
	case io.ReadCloser: // which the end of the call closes, so that nobody waits for it
		body = &joined{io.MultiReader(body, s), s}
	default:
		body = io.MultiReader(body, s)
	}
	return http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, body)
}

// joined is a stream with what comes before it.
type joined struct {
	io.Reader
	io.Closer
}

// failed is the error of a call that had no answer.
func (m *Machine) failed(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %s: %w", m.name, doing, ctx.Err())
	}
	return m.lost(doing, err)
}

// streamed passes over the end of the line that began the answer.
func (a *answer) streamed() error {
	b, err := a.rest.ReadByte()
	if err == nil && b != '\n' {
		err = errors.New("the stream of an answer does not begin a line")
	}
	return err
}

// ask asks for an answer without streams.
func ask[A any](ctx context.Context, m *Machine, path string, of rpc.Of, q any) (a A, err error) {
	got, err := m.begin(ctx, path, of, q, nil)
	if err != nil {
		return a, err
	}
	defer got.Close()
	if err := json.Unmarshal(got.first, &a); err != nil {
		return a, fmt.Errorf("%s: understanding the answer to %s: %w", m.name, path, err)
	}
	return a, nil
}

// tell asks for something to be done.
func tell(ctx context.Context, m *Machine, path string, of rpc.Of, q any) error {
	_, err := ask[rpc.Nothing](ctx, m, path, of, q)
	return err
}
