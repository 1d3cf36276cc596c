package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"skerry/systems/consensus"
	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
)

// maxMember is the most bytes of a body that names a replica.
const maxMember = 4 << 10

// routes are what changes the replicas of a group while it serves; any of them takes it.
func (k backend) routes(log *slog.Logger) map[string]http.HandlerFunc {
	if k.replica == nil {
		return nil
	}
	return members{node: k.replica.Node(), checkCertificate: k.checkCertificate, log: log}.routes()
}

// members are the replicas of a group.
type members struct {
	node             *consensus.Node
	checkCertificate func(ctx context.Context, name, addr string) error
	log              *slog.Logger
}

func (m members) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /v1/members/add":    m.handle(m.add),
		"POST /v1/members/remove": m.handle(m.remove),
	}
}

func (m members) handle(change func(*http.Request, protocol.Member) (status int, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked protocol.Member
		d := json.NewDecoder(io.LimitReader(r.Body, maxMember))
		d.DisallowUnknownFields()
		status, err := http.StatusBadRequest, d.Decode(&asked)
		if err == nil && asked.Name == "" {
			err = fmt.Errorf("%w: a replica without a name", metadata.ErrInvalid)
		}
		if err == nil {
			status, err = change(r, asked)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(protocol.EncodeResult(metadata.Result{Err: err})); err != nil {
			m.log.Debug("the answer to a change of members did not leave", "error", err)
		}
	}
}

// memberNamed is the member of a name.
func (m members) memberNamed(name string) (consensus.Member, bool) {
	for _, o := range m.node.Members() {
		if o.Name == name {
			return o, true
		}
	}
	return consensus.Member{}, false
}

// add takes a replica in: a learner, to which the leader gives a vote when it has caught up.
func (m members) add(r *http.Request, asked protocol.Member) (int, error) {
	if asked.Addr == "" {
		return http.StatusBadRequest, fmt.Errorf("%w: a replica without an address", metadata.ErrInvalid)
	}
	if there, ok := m.memberNamed(asked.Name); ok {
		if there.Addr == asked.Addr {
			return http.StatusOK, nil
		}
		return http.StatusConflict, fmt.Errorf("replica %s %w, at %s", asked.Name, metadata.ErrExists, there.Addr)
	}
	if err := m.checkCertificate(r.Context(), asked.Name, asked.Addr); err != nil {
		return http.StatusConflict, fmt.Errorf("%w: %w", metadata.ErrForbidden, err)
	}
	one := consensus.Member{ID: consensus.MemberID(asked.Name), Name: asked.Name, Addr: asked.Addr, Role: consensus.Voter}
	return changeStatus(m.node.Add(r.Context(), one))
}

// remove has the group forget a replica. One that leads hands over first, so that nobody
// waits for an election.
func (m members) remove(r *http.Request, asked protocol.Member) (int, error) {
	gone, ok := m.memberNamed(asked.Name)
	if !ok {
		return http.StatusNotFound, fmt.Errorf("replica %s: %w", asked.Name, metadata.ErrNotFound)
	}
	if lead, ok := m.node.Leader(); ok && lead.ID == gone.ID {
		m.handOver(r, gone.ID)
	}
	return changeStatus(m.node.Remove(r.Context(), gone.ID))
}

// handOver has another replica that is in reach lead; where none does, an election will.
func (m members) handOver(r *http.Request, from uint64) {
	for _, o := range m.node.Status().Members {
		if o.ID == from || !o.Votes || !o.Connected && o.ID != m.node.Self().ID {
			continue
		}
		if err := m.node.Transfer(r.Context(), o.ID); err != nil {
			m.log.Warn("the leader did not hand over", "to", o.Name, "error", err)
		}
		return
	}
}

// changeStatus is the answer to a change of members: what is in doubt can be asked again.
func changeStatus(err error) (int, error) {
	switch {
	case err == nil:
		return http.StatusOK, nil
	case errors.Is(err, consensus.ErrNotMember):
		return http.StatusNotFound, fmt.Errorf("%w: %w", metadata.ErrNotFound, err)
	}
	return http.StatusServiceUnavailable, fmt.Errorf("%w: %w", metadata.ErrUnavailable, err)
}
