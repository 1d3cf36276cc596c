package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/suggest"
	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/record"
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
	// Endless has a trial measure until it is interrupted, instead of Time.
	Endless bool `json:"-"`
	// Events happen while a trial measures.
	Events []Event `json:"events"`
	// Audit reads every acknowledged write back.
	Audit  bool     `json:"audit"`
	Assert []string `json:"assert"`
}

// Event is an offer of package event with its target, amount and times.
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

// DefaultExperiment returns a valid experiment: the quickstart's cloud and database.
func DefaultExperiment() Experiment {
	return Experiment{
		Name: "my-question", Topology: "azure8", Client: "Singapore", Database: "redis", Workload: "a", Records: 1000, Threads: 32,
		Scales: []float64{1}, Repetitions: 1, Time: "30s", Events: []Event{}, Assert: []string{"availability > 99%"},
	}
}

// eventTimes returns the default times of the i-th of n events: the measurement is cut into 2n+1 parts, and
// every second part has an event.
func (d Experiment) eventTimes(i int) (at, lasts unit.Duration, err error) {
	whole, err := unit.ParseDuration(d.Time)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: duration of a measurement: %w", ErrAnswer, err)
	}
	part := (whole / time.Duration(2*len(d.Events)+1)).Round(100 * time.Millisecond)
	return unit.Duration(part * time.Duration(2*i+1)), unit.Duration(part), nil
}

func (d Experiment) NeedsName() string { return "" }

// Check validates the draft as a file at path and returns its text. The error is the first mistake.
func (d Experiment) Check(path string, databases map[string]database.Database) (text string, v experiment.Validation, err error) {
	if text, err = d.YAML(); err != nil {
		return "", v, err
	}
	if v = experiment.ValidateText(path, []byte(text), databases); !v.Valid {
		return text, v, firstMistake(v.Problems)
	}
	return text, v, nil
}

// YAML is the text of the experiment file. The error wraps ErrAnswer.
func (d Experiment) YAML() (string, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Run it with: skerry run %s.yaml", d.Name)
	line("name: %s", quoteYAML(d.Name))
	line("topology: %s", quoteYAML(d.Topology))
	if d.Client != "" {
		line("client: %s # where the load comes from", quoteYAML(d.Client))
	}
	line("database: %s", quoteYAML(d.Database))
	line("workload: {name: %s, records: %d, threads: %d}", quoteYAML(d.Workload), d.Records, d.Threads)
	if d.Endless {
		line("stop: {operations: %d} # until Ctrl-C", experiment.Endless)
	} else {
		line("stop: {time: %s}", quoteYAML(d.Time))
	}
	switch len(d.Scales) {
	case 0:
	case 1:
		line("scale: %s # times every distance", formatNumber(d.Scales[0]))
	default:
		line("matrix:\n  scale: [%s] # times every distance", strings.Join(formatNumbers(d.Scales), ", "))
	}
	line("repetitions: %d", d.Repetitions)
	if len(d.Events) > 0 {
		line("events:")
	}
	for i, e := range d.Events {
		text, err := d.formatEvent(i, e)
		if err != nil {
			return "", err
		}
		line("  - %s", text)
	}
	if d.Audit {
		line("audit: true # reads every acknowledged write back")
	}
	if len(d.Assert) > 0 {
		line("assert:")
	}
	for _, a := range d.Assert {
		line("  - %s", quoteYAML(a))
	}
	return b.String(), nil
}

func (d Experiment) formatEvent(i int, e Event) (string, error) {
	offers := event.Offers()
	at := slices.IndexFunc(offers, func(o event.Offer) bool { return o.ID == e.Offer })
	if at < 0 {
		return "", unknownOffer(e.Offer, offers)
	}
	o := offers[at]
	begins, lasts, err := d.eventTimes(i)
	if err != nil {
		return "", err
	}
	what, err := formatTarget(o, e.Target)
	if err != nil {
		return "", err
	}
	if o.Amount != nil {
		amount := e.Amount
		if amount == "" {
			amount = o.Amount.Value
		}
		what += fmt.Sprintf(", %s: %s", o.Amount.Key, quoteYAML(amount))
	}
	return fmt.Sprintf(
		"{name: %s-%d, at: %s, for: %s, %s: {%s}}", o.ID, i+1, quoteYAML(firstNonBlank(e.At, begins.String())),
		quoteYAML(firstNonBlank(e.For, lasts.String())), o.Kind, what,
	), nil
}

func formatTarget(o event.Offer, name string) (string, error) {
	switch {
	case name != "":
		return fmt.Sprintf("%s: [%s]", o.Targets, quoteYAML(name)), nil
	case o.On == record.OnLinks:
		return "choose: random", nil
	case o.Targets == "nodes":
		return "nodes: data, choose: random", nil
	}
	return "", fmt.Errorf("%w: the event %s needs a node", ErrAnswer, o.ID)
}

func unknownOffer(id string, offers []event.Offer) error {
	ids := make([]string, len(offers))
	for i, o := range offers {
		ids[i] = o.ID
	}
	if near := suggest.Nearest(id, ids); near != "" {
		return fmt.Errorf("%w: there is no event %q; did you mean %q?", ErrAnswer, id, near)
	}
	return fmt.Errorf("%w: there is no event %q; there are %s", ErrAnswer, id, strings.Join(ids, ", "))
}

func firstNonBlank(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return strings.TrimSpace(text)
}

// plainWord matches texts that YAML reads unchanged without quotes, also inside [ ] and { }.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9/.][A-Za-z0-9~/._+%:=-]*( [A-Za-z0-9<>=./%-]+)*$`)

// specialWord matches words that YAML reads as something other than text, and mappings.
var specialWord = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|~)$|:$|: `)

// quoteYAML writes one line of text so that YAML reads the same text or, if it is one, a number.
func quoteYAML(text string) string {
	if plainWord.MatchString(text) && !specialWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "'", "''") + "'"
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func formatNumbers(list []float64) []string {
	texts := make([]string, len(list))
	for i, f := range list {
		texts[i] = formatNumber(f)
	}
	return texts
}
