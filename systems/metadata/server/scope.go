package server

import (
	"context"
	"fmt"
	"net/http"

	"skerry/internal/base/bearer"
	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
)

// scope is what a request's token allows.
func (s *Server) scope(r *http.Request) bearer.Scope {
	return s.o.Tokens.Scope(r.Header.Get("Authorization"))
}

// requireAdmin is a route for administrators.
func (s *Server) requireAdmin(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if have := s.scope(r); have < bearer.Admin {
			err := fmt.Errorf("%w: the token allows to %v, this needs one that allows to %v", metadata.ErrForbidden, have, bearer.Admin)
			send(w, http.StatusForbidden, protocol.EncodeResult(metadata.Result{Err: err}))
			return
		}
		answer(w, r)
	}
}

// restrict is a service as the holder of a token has it: one that may read changes nothing.
func restrict(service Service, scope bearer.Scope) Service {
	if scope >= bearer.Write {
		return service
	}
	return readOnly{service}
}

type readOnly struct{ Service }

func (r readOnly) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results := make([]metadata.Result, len(commands))
	var reads []metadata.Command
	var at []int
	for i, c := range commands {
		if c.Op.Changes() {
			results[i].Err = &metadata.Error{Path: c.Path, Err: fmt.Errorf("%w: the token is one to read", metadata.ErrForbidden)}
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
