package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"skerry/internal/base/bearer"
	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
)

func (s *Server) handleJSON(service metadata.Service) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.serveJSON(service, w, r) }
}

func (s *Server) serveJSON(service metadata.Service, w http.ResponseWriter, r *http.Request) {
	r = withRequest(r)
	body, held, err := s.readBody(w, r)
	if err != nil {
		return
	}
	defer s.room.Release(held)
	op := r.PathValue("op")
	if op == "batch" {
		s.serveJSONBatch(service, w, r, body)
		return
	}
	if _, err := protocol.ParseOp(op); err != nil {
		send(w, http.StatusNotFound, protocol.EncodeResult(metadata.Result{Err: err}))
		return
	}
	var c protocol.CommandJSON
	if err := decode(body, &c); err == nil && c.Op != "" && c.Op != op {
		err = fmt.Errorf("%w: the URL has operation %s, the body another one", metadata.ErrInvalid, op)
		send(w, http.StatusBadRequest, protocol.EncodeResult(metadata.Result{Err: err}))
		return
	} else if err != nil {
		send(w, http.StatusBadRequest, protocol.EncodeResult(metadata.Result{Err: err}))
		return
	}
	c.Op = op
	result := s.runAll(r, service, []protocol.CommandJSON{c})[0]
	s.setSeenHeader(w, r)
	send(w, metadata.HTTPStatus(result.Err), protocol.EncodeResult(result))
}

func (s *Server) serveJSONBatch(service metadata.Service, w http.ResponseWriter, r *http.Request, body []byte) {
	var batch protocol.Batch
	if err := decode(body, &batch); err != nil {
		send(w, http.StatusBadRequest, protocol.EncodeResult(metadata.Result{Err: err}))
		return
	}
	answer := protocol.Results{Results: make([]protocol.Result, 0, len(batch.Commands))}
	for _, result := range s.runAll(r, service, batch.Commands) {
		answer.Results = append(answer.Results, protocol.EncodeResult(result))
	}
	s.setSeenHeader(w, r)
	send(w, http.StatusOK, answer)
}

func withRequest(r *http.Request) *http.Request {
	if _, says := r.Header[protocol.SeenHeader]; !says {
		return r
	}
	says := metadata.Request{Seen: metadata.ParseSeen(r.Header.Get(protocol.SeenHeader)), Again: r.Header.Get(protocol.AgainHeader) != ""}
	if id := r.Header.Get(protocol.IdentityHeader); len(id) <= maxIdentity {
		says.Identity = id
	}
	return r.WithContext(metadata.WithRequest(r.Context(), says))
}

const maxIdentity = 128

// setSeenHeader sends the log positions to clients that use identities.
func (s *Server) setSeenHeader(w http.ResponseWriter, r *http.Request) {
	if _, asked := r.Header[protocol.SeenHeader]; asked && s.o.Seen != nil {
		w.Header().Set(protocol.SeenHeader, s.o.Seen().String())
	}
}

// runAll runs the valid commands, and returns the results of all.
func (s *Server) runAll(r *http.Request, service metadata.Service, asked []protocol.CommandJSON) []metadata.Result {
	start := time.Now()
	results := make([]metadata.Result, len(asked))
	commands, runs := make([]metadata.Command, 0, len(asked)), make([]int, 0, len(asked))
	ops := make([]metadata.Op, len(asked))
	for i, a := range asked {
		c, err := a.Decode()
		ops[i], results[i].Err = c.Op, err
		if err == nil && len(c.Identity) > maxIdentity {
			err = fmt.Errorf("%w identity: at most %d bytes", metadata.ErrInvalid, maxIdentity)
			results[i].Err = err
		}
		if err == nil {
			commands, runs = append(commands, c), append(runs, i)
		}
	}
	for i, result := range restrict(service, s.scope(r)).Do(r.Context(), commands) {
		results[runs[i]] = result
	}
	for i := range results {
		s.metrics.observe(ops[i], results[i].Err, start)
	}
	return results
}

func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err != nil {
		return fmt.Errorf("%w body: %w", metadata.ErrInvalid, err)
	}
	return nil
}

func send(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

func (s *Server) serveStatus(w http.ResponseWriter, _ *http.Request) {
	if s.o.Status == nil {
		http.Error(w, "no status", http.StatusNotFound)
		return
	}
	send(w, http.StatusOK, s.o.Status())
}

func (s *Server) scope(r *http.Request) bearer.Scope {
	return s.o.Tokens.Scope(r.Header.Get("Authorization"))
}

func (s *Server) requireAdmin(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if have := s.scope(r); have < bearer.Admin {
			err := fmt.Errorf("%w: the token allows %v, the request needs %v", metadata.ErrForbidden, have, bearer.Admin)
			send(w, http.StatusForbidden, protocol.EncodeResult(metadata.Result{Err: err}))
			return
		}
		answer(w, r)
	}
}

// restrict returns a service that allows what scope allows: a reader's service refuses changes.
func restrict(service metadata.Service, scope bearer.Scope) metadata.Service {
	if scope >= bearer.Write {
		return service
	}
	return readOnly{service}
}

type readOnly struct{ metadata.Service }

func (r readOnly) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results := make([]metadata.Result, len(commands))
	var reads []metadata.Command
	var at []int
	for i, c := range commands {
		if c.Op.Changes() {
			results[i].Err = &metadata.Error{Path: c.Path, Err: fmt.Errorf("%w: the token only allows reading", metadata.ErrForbidden)}
			continue
		}
		reads, at = append(reads, c), append(at, i)
	}
	if len(reads) > 0 {
		for i, result := range r.Service.Do(ctx, reads) {
			results[at[i]] = result
		}
	}
	return results
}
