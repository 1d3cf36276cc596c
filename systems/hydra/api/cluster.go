package api

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	status := s.Backend.Status(r.Context())
	status.Draining = s.Draining()
	return writeJSON(w, status)
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, map[string]string{"member": s.Member})
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.Draining() {
		return Problemf(CodeDraining, "%s is going down", s.Member)
	}
	if err := s.Backend.Ready(r.Context()); err != nil {
		return Problemf(CodeUnavailable, "%v", err)
	}
	return writeJSON(w, map[string]string{"member": s.Member})
}

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(OpenAPI) // fails only if the client has disconnected
	return nil
}

func (s *Server) members(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, Members{s.Backend.Status(r.Context()).Members})
}

func (s *Server) addMember(w http.ResponseWriter, r *http.Request) error {
	var m Member
	if err := decodeBody(r, &m); err != nil {
		return err
	}
	if m.Name == "" || m.Peer == "" || m.Cloud == "" {
		return Problemf(CodeBadRequest, "a member needs name, cloud and peer")
	}
	added, err := s.Backend.AddMember(r.Context(), m)
	if err != nil {
		return err
	}
	return writeJSON(w, added)
}

func (s *Server) removeMember(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil || id == 0 {
		return Problemf(CodeBadRequest, "%.40q is not a member ID", r.PathValue("id"))
	}
	if err := s.Backend.RemoveMember(r.Context(), id); err != nil {
		return err
	}
	return writeJSON(w, struct{}{})
}

func (s *Server) transfer(w http.ResponseWriter, r *http.Request) error {
	var c LeaderChange
	if err := decodeBody(r, &c); err != nil {
		return err
	}
	if err := s.Backend.Transfer(r.Context(), c.To); err != nil {
		return err
	}
	return writeJSON(w, struct{}{})
}

// Progress is the applied index of a cloud's database.
type Progress struct {
	Cloud   string `json:"cloud"`
	Applied uint64 `json:"applied"`
}

const maxProgress = 5 * time.Second

func (s *Server) progress(w http.ResponseWriter, r *http.Request) error {
	var index uint64
	if text := r.Form.Get("index"); text != "" {
		var err error
		if index, err = strconv.ParseUint(text, 10, 63); err != nil {
			return Problemf(CodeBadRequest, "index=%.30s is not an index", text)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxProgress)
	defer cancel()
	applied := s.Backend.Progress(ctx, index)
	return writeJSON(w, Progress{Cloud: s.Backend.Status(ctx).Cloud, Applied: applied})
}

func (s *Server) snapshot(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := s.Backend.Snapshot(r.Context(), w); err != nil {
		// The answer has started. Without its end, the client detects that it is incomplete.
		s.Log.Error("sending a snapshot failed", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
