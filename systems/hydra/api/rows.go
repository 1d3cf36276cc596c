package api

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"skerry/systems/hydra/command"
)

func parseConsistency(q url.Values) (Consistency, error) {
	w := Consistency{Read: Read(q.Get("read"))}
	switch w.Read {
	case "":
		w.Read = Linearizable
	case Linearizable, Local, Bounded:
	default:
		return w, Problemf(CodeBadRequest, "read=%s: want linearizable, local or bounded", w.Read)
	}
	if text := q.Get("max_staleness_ms"); text != "" || w.Read == Bounded {
		ms, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return w, Problemf(CodeBadRequest, "read=bounded needs max_staleness_ms, a number of milliseconds")
		}
		w.Read, w.Staleness = Bounded, time.Duration(ms)*time.Millisecond
	}
	return w, nil
}

func parseRead(r *http.Request) (table string, w Consistency, err error) {
	table = r.PathValue("table")
	if err := command.ValidTable(table); err != nil {
		return "", w, badRequest(err)
	}
	w, err = parseConsistency(r.Form)
	return table, w, err
}

func badRequest(err error) error { return Problemf(CodeBadRequest, "%v", err) }

func (s *Server) get(w http.ResponseWriter, r *http.Request) error {
	table, want, err := parseRead(r)
	if err != nil {
		return err
	}
	key := r.PathValue("key")
	if err := command.ValidKey(key); err != nil {
		return badRequest(err)
	}
	row, f, err := s.Backend.Get(r.Context(), table, key, want)
	if err != nil {
		return err
	}
	setFreshness(w, f)
	return writeBody(w, appendRow(make([]byte, 0, len(row.Value)+len(key)+64), row))
}

func (s *Server) scan(w http.ResponseWriter, r *http.Request) error {
	table, want, err := parseRead(r)
	if err != nil {
		return err
	}
	in, err := parseRange(r.Form)
	if err != nil {
		return err
	}
	rows, f, err := s.Backend.Scan(r.Context(), table, in, want)
	if err != nil {
		return err
	}
	setFreshness(w, f)
	b := append(make([]byte, 0, 1024), `{"rows":[`...)
	size := 0
	for i, row := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRow(b, row)
		size += len(row.Value)
	}
	b = append(b, ']')
	if len(rows) > 0 && (len(rows) == in.Limit || size >= MaxScanBytes) {
		b = append(b, `,"next":`...)
		b = appendString(b, rows[len(rows)-1].Key)
	}
	return writeBody(w, append(b, '}'))
}

func parseRange(q url.Values) (Range, error) {
	in := Range{From: q.Get("from"), Limit: DefaultScan}
	prefix := q.Get("prefix")
	if prefix != "" {
		in.From = max(in.From, prefix)
		in.Until = prefixEnd(prefix)
	}
	if after := q.Get("after"); after != "" && after >= in.From {
		in.From, in.Behind = after, true
	}
	for name, text := range map[string]string{"from": q.Get("from"), "after": q.Get("after"), "prefix": prefix} {
		if text == "" {
			continue
		}
		if err := command.ValidKey(text); err != nil {
			return in, Problemf(CodeBadRequest, "%s: %v", name, err)
		}
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxScan {
			return in, Problemf(CodeBadRequest, "limit=%.20s: a number from 1 to %d", text, MaxScan)
		}
		in.Limit = n
	}
	return in, nil
}

// prefixEnd returns the least string greater than all UTF-8 strings with a prefix, "" for none.
func prefixEnd(prefix string) string {
	runes := []rune(prefix)
	for i := len(runes) - 1; i >= 0; i-- {
		if runes[i] < 0x10FFFF {
			next := runes[i] + 1
			if next == 0xD800 { // skip surrogates
				next = 0xE000
			}
			return string(append(runes[:i], next))
		}
	}
	return ""
}

func (s *Server) count(w http.ResponseWriter, r *http.Request) error {
	table, want, err := parseRead(r)
	if err != nil {
		return err
	}
	n, f, err := s.Backend.Count(r.Context(), table, want)
	if err != nil {
		return err
	}
	setFreshness(w, f)
	return writeJSON(w, Count{n})
}

func (s *Server) listTables(w http.ResponseWriter, r *http.Request) error {
	want, err := parseConsistency(r.Form)
	if err != nil {
		return err
	}
	names, f, err := s.Backend.Tables(r.Context(), want)
	if err != nil {
		return err
	}
	setFreshness(w, f)
	return writeJSON(w, Tables{append([]string{}, names...)})
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, t *Transaction) error {
	if id := r.Header.Get(HeaderRequestID); id != "" {
		if t.RequestID != "" && t.RequestID != id {
			return Problemf(CodeBadRequest, "the header %s and request_id differ", HeaderRequestID)
		}
		t.RequestID = id
	}
	ack := Ack(r.Form.Get("ack"))
	switch ack {
	case "":
		ack = Committed
	case Committed, Applied, Everywhere:
	default:
		return Problemf(CodeBadRequest, "ack=%s: want committed, applied or everywhere", ack)
	}
	if err := t.Normalize(); err != nil {
		if errors.Is(err, command.ErrInvalid) {
			return badRequest(err)
		}
		return err
	}
	done, err := s.Backend.Write(r.Context(), t, ack)
	var elsewhere *Elsewhere
	if errors.As(err, &elsewhere) && r.Header.Get(HeaderForwarded) == "" && s.Forward != nil {
		done, err = s.forwardTransaction(w, r, elsewhere, t, ack)
	}
	if err != nil {
		return err
	}
	version := strconv.FormatUint(done.Version, 10)
	w.Header()[HeaderVersion] = []string{version}
	return writeBody(w, []byte(`{"version":`+version+`,"ack":"`+string(done.Ack)+`"}`))
}

func rowWrite(r *http.Request, do command.Action) Write {
	return Write{Do: do, Table: r.PathValue("table"), Key: r.PathValue("key")}
}

func conditions(q url.Values, on Write) ([]Check, error) {
	if text := q.Get("if_version"); text != "" {
		v, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return nil, Problemf(CodeBadRequest, "if_version=%.30s is not a version", text)
		}
		return []Check{{Table: on.Table, Key: on.Key, Is: command.Version, Version: v}}, nil
	}
	switch text := q.Get("if_absent"); text {
	case "", "false":
		return nil, nil
	case "true":
		return []Check{{Table: on.Table, Key: on.Key, Is: command.Absent}}, nil
	default:
		return nil, Problemf(CodeBadRequest, "if_absent=%.30s: want true or false", text)
	}
}

func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	put := rowWrite(r, command.Put)
	put.Value = requestBody(r)
	checks, err := conditions(r.Form, put)
	if err != nil {
		return err
	}
	return s.write(w, r, &Transaction{Checks: checks, Writes: []Write{put}})
}

func (s *Server) merge(w http.ResponseWriter, r *http.Request) error {
	put := rowWrite(r, command.Merge)
	put.Value = requestBody(r)
	return s.writeExisting(w, r, put)
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) error {
	return s.writeExisting(w, r, rowWrite(r, command.Delete))
}

func (s *Server) writeExisting(w http.ResponseWriter, r *http.Request, change Write) error {
	more, err := conditions(r.Form, change)
	if err != nil {
		return err
	}
	t := &Transaction{Checks: append([]Check{{Table: change.Table, Key: change.Key, Is: command.Exists}}, more...), Writes: []Write{change}}
	err = s.write(w, r, t)
	var p *Problem
	if errors.As(err, &p) && p.Code == CodeCheckFailed && p.Failed != nil && *p.Failed == 0 {
		return Problemf(CodeNotFound, "no row %q in table %s", change.Key, change.Table)
	}
	return err
}

func (s *Server) transact(w http.ResponseWriter, r *http.Request) error {
	var t Transaction
	if err := decodeBody(r, &t); err != nil {
		return err
	}
	return s.write(w, r, &t)
}

func (s *Server) changeTable(do command.Action) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		return s.write(w, r, &Transaction{Writes: []Write{{Do: do, Table: r.PathValue("table")}}})
	}
}
