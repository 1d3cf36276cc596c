package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"skerry/internal/machine/rpc"
)

// exchange is one call and its answer.
type exchange struct {
	of  rpc.Of
	ask json.RawMessage
	in  io.Reader // the stream of the request
	end io.Closer // ends the reading of it
	w   http.ResponseWriter
}

// call answers an exchange.
type call func(ctx context.Context, s *server, x *exchange)

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	defer s.calls.Done()
	answer := calls[r.URL.Path]
	x := &exchange{w: w, end: r.Body}
	var request rpc.Request
	decoder := json.NewDecoder(r.Body)
	switch err := decoder.Decode(&request); {
	case answer == nil:
		x.answer(nil, fmt.Errorf("the agent is not asked %s", r.URL.Path))
		return
	case err != nil:
		x.answer(nil, fmt.Errorf("reading what is asked by %s: %w", r.URL.Path, err))
		return
	}
	x.of, x.ask = request.Of, request.Ask
	rest := bufio.NewReader(io.MultiReader(decoder.Buffered(), r.Body))
	// The line's end belongs to it. A call without a stream may have none.
	if b, err := rest.Peek(1); err == nil && b[0] == '\n' {
		_, _ = rest.Discard(1)
	}
	x.in = rest
	answer(r.Context(), s, x)
}

// answer begins the answer, which is over where nothing follows.
func (x *exchange) answer(v any, err error) bool {
	response := rpc.Response{Error: rpc.Tell(err)}
	if err == nil {
		if response.Answer, err = json.Marshal(v); err != nil {
			response.Error = rpc.Tell(fmt.Errorf("telling the answer: %w", err))
		}
	}
	// The connection's end is the caller's to tell.
	if json.NewEncoder(x.w).Encode(response) != nil || x.flush() != nil {
		return false
	}
	return response.Error == nil
}

func (x *exchange) flush() error { return http.NewResponseController(x.w).Flush() }

// asked decodes what is asked.
func asked[Q any](x *exchange) (q Q, err error) {
	if len(x.ask) > 0 {
		err = json.Unmarshal(x.ask, &q)
	}
	return q, err
}

// plain is a call of a function of what the exchange is about, without streams.
func plain[On, Q, A any](find func(s *server, of rpc.Of) (On, error), f func(ctx context.Context, on On, q Q) (A, error)) call {
	return func(ctx context.Context, s *server, x *exchange) {
		var a A
		q, err := asked[Q](x)
		if err == nil {
			var on On
			if on, err = find(s, x.of); err == nil {
				a, err = f(ctx, on, q)
			}
		}
		x.answer(a, err)
	}
}

// told is an f that answers nothing.
func told[On, Q any](f func(ctx context.Context, on On, q Q) error) func(context.Context, On, Q) (rpc.Nothing, error) {
	return func(ctx context.Context, on On, q Q) (rpc.Nothing, error) { return rpc.Nothing{}, f(ctx, on, q) }
}
