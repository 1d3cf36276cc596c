package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"skerry/internal/base/bodylimit"
	"skerry/systems/hydra/command"
)

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func writeJSON(w http.ResponseWriter, v any) error {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return writeBody(w, b.Bytes())
}

var jsonType = []string{"application/json"}

func writeBody(w http.ResponseWriter, b []byte) error {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	_, _ = w.Write(b) // fails only if the client has disconnected
	return nil
}

func appendRow(dst []byte, r Row) []byte {
	dst = append(dst, `{"key":`...)
	dst = appendString(dst, r.Key)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendUint(dst, r.Version, 10)
	dst = append(dst, `,"value":`...)
	dst = append(dst, r.Value...)
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			b, err := command.EncodeJSON(s)
			if err != nil { // a string always marshals
				b = []byte(`""`)
			}
			return append(dst, b...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func setFreshness(w http.ResponseWriter, f Freshness) {
	h := w.Header()
	h[HeaderCloud] = []string{f.Cloud}
	h[HeaderApplied] = []string{strconv.FormatUint(f.Applied, 10)}
	h[HeaderLag] = []string{strconv.FormatUint(f.Lag, 10)}
	if f.Staleness >= 0 {
		h[HeaderStaleness] = []string{strconv.FormatFloat(float64(f.Staleness.Microseconds())/1000, 'f', -1, 64)}
	}
}

func (s *Server) writeProblem(w http.ResponseWriter, p *Problem) int {
	status := StatusOf(p.Code)
	h := w.Header()
	switch status {
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	}
	h["Content-Type"] = jsonType
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client has disconnected
	return status
}

// StatusOf returns the HTTP status of a problem's code.
func StatusOf(code string) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

type receivedBody struct {
	io.ReadCloser
	text []byte
}

func (s *Server) receiveBody(w http.ResponseWriter, r *http.Request) (held int64, err error) {
	if r.ContentLength == 0 {
		r.Body = http.NoBody
		return 0, nil
	}
	most := int64(MaxBody)
	if r.Header.Get(HeaderForwarded) != "" {
		most += forwardedMore
	}
	text, held, err := s.room.ReadBody(w, r, most, s.Patience)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, bodylimit.ErrFull):
		s.shed.Inc()
		err = Problemf(CodeOverloaded, "%v", err)
	case err != nil && !errors.As(err, &large):
		err = Problemf(CodeBadRequest, "the body did not arrive: %v", err)
	}
	r.Body = receivedBody{http.NoBody, text}
	return held, err
}

func requestBody(r *http.Request) []byte {
	w, _ := r.Body.(receivedBody) // set by receiveBody
	return w.text
}

func decodeBody(r *http.Request, into any) error {
	d := json.NewDecoder(bytes.NewReader(requestBody(r)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Problemf(CodeBadRequest, "invalid body: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Problemf(CodeBadRequest, "unexpected data after the JSON body")
	}
	return nil
}

func (s *Server) forwardTransaction(w http.ResponseWriter, r *http.Request, to *Elsewhere, t *Transaction, a Ack) (Written, error) {
	var done Written
	text, err := command.EncodeJSON(t)
	if err != nil {
		return done, fmt.Errorf("forwarding a transaction: %w", err)
	}
	out, err := s.newForwardRequest(r, http.MethodPost, &url.URL{Path: "/v1/transactions", RawQuery: "ack=" + string(a)}, to,
		bytes.NewReader(text))
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

func (s *Server) newForwardRequest(r *http.Request, method string, u *url.URL, to *Elsewhere, body io.Reader) (*http.Request, error) {
	at := *u
	at.Scheme, at.Host = "http", to.API
	if s.ForwardTLS {
		at.Scheme = "https"
	}
	out, err := http.NewRequestWithContext(r.Context(), method, at.String(), body)
	if err != nil {
		return nil, Problemf(CodeUnavailable, "%v; forwarding: %v", to.Why, err)
	}
	if a := r.Header.Get("Authorization"); a != "" {
		out.Header.Set("Authorization", a)
	}
	out.Header.Set(HeaderForwarded, s.Member)
	return out, nil
}

func (s *Server) forwardRequest(w http.ResponseWriter, r *http.Request, to *Elsewhere) int {
	out, err := s.newForwardRequest(r, r.Method, r.URL, to, nil)
	if err != nil {
		return s.writeError(w, r, err)
	}
	got, err := s.Forward.RoundTrip(out)
	if err != nil {
		return s.writeProblem(w, Problemf(CodeUnavailable, "%v; passing it on to %s: %v", to.Why, to.Member, err))
	}
	defer got.Body.Close()
	for k, v := range got.Header {
		w.Header()[k] = v
	}
	w.Header().Set(HeaderForwarded, s.Member)
	w.WriteHeader(got.StatusCode)
	_, _ = io.Copy(w, got.Body) // the client detects a truncated answer by its length
	return got.StatusCode
}
