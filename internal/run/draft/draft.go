// Package draft makes the text of an experiment file or of a needs file from a few answers. skerry
// init asks for them in a terminal and takes flags, and the dashboard has a form for each:
//
//	answers ─► Experiment or Needs ─► YAML ─► the parser of the file, as for any file
//
// A draft expresses nothing that a file cannot, and checks nothing that loading the file does not.
package draft

import (
	"errors"
	"fmt"
	"strings"

	"skerry/internal/experiment"
	"skerry/internal/topology"
)

// ErrAnswer means that an answer makes the file invalid.
var ErrAnswer = errors.New("invalid answer")

// File is an answered draft of a file.
type File interface {
	// YAML is the text of the file. The error wraps ErrAnswer.
	YAML() (string, error)
	// NeedsName is the name of a needs file, "" for an experiment.
	NeedsName() string
}

// firstMistake is the error of a file's first mistake, without its line: the file is not written yet.
func firstMistake(mistakes []experiment.Mistake) error {
	return fmt.Errorf("%w: %s", ErrAnswer, strings.TrimSuffix(mistakes[0].Message+"; "+mistakes[0].Hint, "; "))
}

// Places are the names of a topology that answers can use.
type Places struct {
	Sites []string `json:"sites"`
	Nodes []string `json:"nodes"` // with data
	Links []string `json:"links"` // at most mostLinks
}

const mostLinks = 400

func NewPlaces(t topology.Topology) Places {
	p := Places{Sites: []string{}, Nodes: []string{}, Links: []string{}}
	for _, s := range t.Sites {
		p.Sites = append(p.Sites, s.Name)
	}
	for _, n := range t.Nodes {
		if n.Role == topology.Data {
			p.Nodes = append(p.Nodes, n.Name)
		}
	}
	for _, l := range t.Links[:min(len(t.Links), mostLinks)] {
		p.Links = append(p.Links, l.ID)
	}
	return p
}

// first is the default site of clients.
func (p Places) first() string {
	if len(p.Sites) == 0 {
		return ""
	}
	return p.Sites[0]
}

// ParseEvent reads an event as a person writes it on a command line: OFFER, OFFER=TARGET, each
// with ,at=TIME ,for=TIME ,amount=VALUE behind it. The error wraps ErrAnswer.
func ParseEvent(text string) (Event, error) {
	parts := strings.Split(text, ",")
	var e Event
	e.Offer, e.Target, _ = strings.Cut(strings.TrimSpace(parts[0]), "=")
	for _, p := range parts[1:] {
		key, value, ok := strings.Cut(strings.TrimSpace(p), "=")
		switch {
		case ok && key == "at":
			e.At = value
		case ok && key == "for":
			e.For = value
		case ok && key == "amount":
			e.Amount = value
		default:
			return e, fmt.Errorf("%w: %q of the event %q is none of at=TIME, for=TIME, amount=VALUE", ErrAnswer, p, text)
		}
	}
	return e, nil
}
