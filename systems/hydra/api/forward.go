package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"skerry/systems/hydra/command"
)

// passOn has another member do a transaction.
func (s *Server) passOn(w http.ResponseWriter, r *http.Request, to *Elsewhere, t *Transaction, a Ack) (Written, error) {
	var done Written
	text, err := command.JSON(t)
	if err != nil {
		return done, fmt.Errorf("passing a transaction on: %w", err)
	}
	out, err := s.outgoing(r, http.MethodPost, &url.URL{Path: "/v1/transactions", RawQuery: "ack=" + string(a)}, to, bytes.NewReader(text))
	if err != nil {
		return done, err
	}
	got, err := s.Forward.RoundTrip(out)
	if err != nil {
		return done, Problemf(CodeInDoubt, "%v; passing it on to %s: %v", to.Why, to.Member, err)
	}
	defer got.Body.Close()
	w.Header().Set(HeaderForwarded, s.Member)
	if got.StatusCode == http.StatusOK {
		if err := json.NewDecoder(got.Body).Decode(&done); err != nil {
			return done, Problemf(CodeInDoubt, "the answer of %s: %v", to.Member, err)
		}
		return done, nil
	}
	p := &Problem{}
	if err := json.NewDecoder(got.Body).Decode(p); err != nil || p.Code == "" {
		return done, Problemf(CodeInDoubt, "%s answered %s", to.Member, got.Status)
	}
	return done, p
}

// outgoing is a request to another member, with the right that came with the first.
func (s *Server) outgoing(r *http.Request, method string, u *url.URL, to *Elsewhere, body io.Reader) (*http.Request, error) {
	at := *u
	at.Scheme, at.Host = "http", to.API
	if s.ForwardTLS {
		at.Scheme = "https"
	}
	out, err := http.NewRequestWithContext(r.Context(), method, at.String(), body)
	if err != nil {
		return nil, Problemf(CodeUnavailable, "%v; passing it on: %v", to.Why, err)
	}
	if a := r.Header.Get("Authorization"); a != "" {
		out.Header.Set("Authorization", a)
	}
	out.Header.Set(HeaderForwarded, s.Member)
	return out, nil
}

// forward has another member answer a request without a body.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, to *Elsewhere) int {
	out, err := s.outgoing(r, r.Method, r.URL, to, nil)
	if err != nil {
		return s.fail(w, r, err)
	}
	got, err := s.Forward.RoundTrip(out)
	if err != nil {
		return s.refuse(w, Problemf(CodeUnavailable, "%v; passing it on to %s: %v", to.Why, to.Member, err))
	}
	defer got.Body.Close()
	for k, v := range got.Header {
		w.Header()[k] = v
	}
	w.Header().Set(HeaderForwarded, s.Member)
	w.WriteHeader(got.StatusCode)
	_, _ = io.Copy(w, got.Body) // an answer cut short is seen by its length
	return got.StatusCode
}
