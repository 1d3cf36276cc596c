package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
)

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// answer writes JSON.
func answer(w http.ResponseWriter, v any) error {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return send(w, b.Bytes())
}

var jsonType = []string{"application/json"}

func send(w http.ResponseWriter, b []byte) error {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	_, _ = w.Write(b) // who does not read the answer has gone
	return nil
}

// appendRow appends a row as JSON.
func appendRow(dst []byte, r Row) []byte {
	dst = append(dst, `{"key":`...)
	dst = appendString(dst, r.Key)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendUint(dst, r.Version, 10)
	dst = append(dst, `,"value":`...)
	dst = append(dst, r.Value...)
	return append(dst, '}')
}

// appendString quotes a text; one of plain characters needs no encoder.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			b, err := json.Marshal(s)
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

// fresh tells what an answer was read from.
func fresh(w http.ResponseWriter, f Freshness) {
	h := w.Header()
	h[HeaderCloud] = []string{f.Cloud}
	h[HeaderApplied] = []string{strconv.FormatUint(f.Applied, 10)}
	h[HeaderLag] = []string{strconv.FormatUint(f.Lag, 10)}
	if f.Staleness >= 0 {
		h[HeaderStaleness] = []string{strconv.FormatFloat(float64(f.Staleness.Microseconds())/1000, 'f', -1, 64)}
	}
}

// refuse answers with a problem and returns the status.
func (s *Server) refuse(w http.ResponseWriter, p *Problem) int {
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
	_ = json.NewEncoder(w).Encode(p) // who does not read the answer has gone
	return status
}

// StatusOf is the HTTP status of a problem's code.
func StatusOf(code string) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// body reads a request's body.
func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, MaxBody)
	if n := r.ContentLength; n >= 0 && n <= MaxBody {
		b := make([]byte, n)
		if _, err := io.ReadFull(limited, b); err != nil {
			return nil, Problemf(CodeBadRequest, "the body is cut short: %v", err)
		}
		return b, nil
	}
	b, err := io.ReadAll(limited)
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	return b, nil
}

// decode reads a body that is one JSON value, without names that are not known.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	b, err := body(w, r)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Problemf(CodeBadRequest, "the body is not what is expected here: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Problemf(CodeBadRequest, "something follows the JSON in the body")
	}
	return nil
}
