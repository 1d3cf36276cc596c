package draft

import (
	"fmt"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/experiment"
)

// Experiment has the answers that make an experiment file.
type Experiment struct {
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

// DefaultExperiment runs as it is: the quickstart's cloud and database.
func DefaultExperiment() Experiment {
	return Experiment{
		Name: "my-question", Topology: "azure8", Client: "Singapore", Database: "redis", Workload: "a", Records: 1000, Threads: 32,
		Scales: []float64{1}, Repetitions: 1, Time: "30s", Events: []Event{}, Assert: []string{"availability > 99%"},
	}
}

// times are when the i-th of n events begins and how long it lasts where nobody said so: the
// measurement is cut into 2n+1 parts, every second of which has an event.
func (d Experiment) times(i int) (at, lasts unit.Duration, err error) {
	whole, err := unit.ParseDuration(d.Time)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: how long a trial measures: %w", ErrAnswer, err)
	}
	part := (whole / time.Duration(2*len(d.Events)+1)).Round(100 * time.Millisecond)
	return unit.Duration(part * time.Duration(2*i+1)), unit.Duration(part), nil
}

// NeedsName implements File.
func (d Experiment) NeedsName() string { return "" }

// Check validates the draft as a file at path and returns its text. The error is the first mistake.
func (d Experiment) Check(path string, databases map[string]database.Database) (text string, v experiment.Validation, err error) {
	if text, err = d.YAML(); err != nil {
		return "", v, err
	}
	if v = experiment.ValidateText(path, []byte(text), databases); !v.Valid {
		return text, v, invalid(v.Problems)
	}
	return text, v, nil
}
