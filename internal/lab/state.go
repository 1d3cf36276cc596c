package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"skerry/internal/lab/service"
	"skerry/internal/topology"
)

// state is what a lab says of itself when it is up, for commands that come later.
type state struct {
	Name     string            `json:"name"`
	Created  time.Time         `json:"created"`
	Topology topology.Topology `json:"topology"`
	Seed     uint64            `json:"seed"`
	// Numbered says that the devices of links have addresses of their own.
	Numbered bool `json:"numbered,omitempty"`
	// Service is how clients reach the database, nil without one.
	Service *service.Plan `json:"service,omitempty"`
}

// linksState is what changes of a lab while it is up.
type linksState struct {
	Factor float64 `json:"factor"`
	Links  []Link  `json:"links"`
}

func (l linksState) clone() linksState {
	l.Links = append([]Link(nil), l.Links...)
	return l
}

// keep notes that the lab is up, and what it is.
func (l *Lab) keep(ctx context.Context) error {
	whole, err := json.Marshal(l.state)
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	if err := l.note(ctx, l.links); err != nil {
		return err
	}
	return l.part.Keep(ctx, whole)
}

// note writes how links are.
func (l *Lab) note(ctx context.Context, s linksState) error {
	note, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	return l.part.SetNote(ctx, note)
}

// readNote reads how links are.
func (l *Lab) readNote(ctx context.Context) error {
	note, err := l.part.Note(ctx)
	if err == nil {
		err = parse(note, &l.links)
	}
	return err
}

func parse(text json.RawMessage, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read state of lab: %w", err)
	}
	return nil
}
