// Package draft makes the text of an experiment file from a few answers, as skerry init and the
// dashboard's form ask for them:
//
//	answers ─► Draft ─► YAML ─► experiment.Load, like any file that a person wrote
//
// A draft says nothing that a file cannot, and checks nothing that loading the file does not.
package draft

import (
	"errors"
	"fmt"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/topology"
)

// ErrAnswer says that with an answer there is no valid experiment.
var ErrAnswer = errors.New("this makes no valid experiment")

// Draft is what was answered.
type Draft struct {
	Name string `json:"name"`
	// Topology is a preset or the path of a topology file.
	Topology string `json:"topology"`
	// Client is the site where the load comes from; "" is the topology's first.
	Client   string `json:"client"`
	Database string `json:"database"`
	Workload string `json:"workload"`
	Records  int64  `json:"records"`
	Threads  int    `json:"threads"`
	// Scales are the factors of all distances, each a trial; none is 1.
	Scales      []float64 `json:"scales"`
	Repetitions int       `json:"repetitions"`
	// Time is how long each trial measures, such as "30s".
	Time string `json:"time"`
	// Endless has a trial measure until it is interrupted, in place of Time.
	Endless bool `json:"-"`
	// Events happen while a trial measures.
	Events []Event `json:"events"`
	// Audit reads every acknowledged write back.
	Audit  bool     `json:"audit"`
	Assert []string `json:"assert"`
}

// Event is an offer of package event, with where, how much and when.
type Event struct {
	// Offer is the ID of one of event.Offers.
	Offer string `json:"offer"`
	// Target is a node or a link; "" is one at random, drawn from the experiment's seed.
	Target string `json:"target"`
	// Amount is what the offer asks for; "" is its default.
	Amount string `json:"amount"`
	// At is after how much of the measurement, For how long; "" spreads the events evenly.
	At  string `json:"at"`
	For string `json:"for"`
}

// Default is a draft that runs as it is: the quickstart's cloud and database.
func Default() Draft {
	return Draft{
		Name: "my-question", Topology: "azure8", Client: "Singapore", Database: "redis", Workload: "a", Records: 1000, Threads: 32,
		Scales: []float64{1}, Repetitions: 1, Time: "30s", Events: []Event{}, Assert: []string{"availability > 99%"},
	}
}

// times are when the i-th of n events begins and how long it lasts where nobody said so: the
// measurement is cut into 2n+1 parts, every second of which has an event.
func (d Draft) times(i int) (at, lasts unit.Duration, err error) {
	whole, err := unit.ParseDuration(d.Time)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: how long a trial measures: %w", ErrAnswer, err)
	}
	part := (whole / time.Duration(2*len(d.Events)+1)).Round(100 * time.Millisecond)
	return unit.Duration(part * time.Duration(2*i+1)), unit.Duration(part), nil
}

// Places are what answers can name of a topology.
type Places struct {
	Sites []string `json:"sites"`
	Nodes []string `json:"nodes"` // that carry data
	Links []string `json:"links"` // at most mostLinks
}

// mostLinks bounds a list that a person chooses from.
const mostLinks = 400

// PlacesOf lists what a topology has.
func PlacesOf(t topology.Topology) Places {
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
