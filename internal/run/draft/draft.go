// Package draft makes the text of an experiment file or of a needs file from a few answers: the flags of
// skerry init, or a form of the dashboard.
//
//	answers ─► Experiment or Needs ─► YAML ─► the parser of the file, as for any file
//
// A draft expresses nothing that a file cannot, and checks nothing that loading the file does not.
package draft

import (
	"errors"
	"fmt"
	"strings"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/run/choose"
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

// Needs has the answers that make a needs file.
type Needs struct {
	// Name is that of the file.
	Name string `json:"name"`
	// Cloud is a preset or the path of a topology file.
	Cloud string `json:"cloud"`
	// Clients are the sites that requests come from; none is the cloud's first.
	Clients  []string `json:"clients"`
	Workload string   `json:"workload"`
	// Target is how many operations a second are asked for; 0 is as many as there can be.
	Target  float64 `json:"target"`
	Records int64   `json:"records"`
	// Must are lines of must, as "p99 < 400ms" or "read: linearizable".
	Must []string `json:"must"`
	// BadDays are lines of bad_days, as "site_lost: Pune".
	BadDays []string `json:"bad_days"`
	Prefer  []string `json:"prefer"`
	// Consider are the databases; none is all that are installed.
	Consider []string `json:"consider"`
	// Budget is how long the choice may take, such as "40min".
	Budget string `json:"budget"`
}

// DefaultNeeds returns valid needs.
func DefaultNeeds() Needs {
	return Needs{
		Name: "needs", Cloud: "azure8", Clients: []string{"Singapore"}, Workload: "b", Target: 200, Records: 10000,
		Must:    []string{"p99 < 400ms", "availability > 99%", "lost_writes == 0", "read: any"},
		BadDays: []string{"link_cut: any", "killed: any"}, Prefer: []string{"p99", "cost.memory"}, Consider: []string{}, Budget: "40min",
	}
}

// Days returns the kinds of bad days with the titles of a form.
func Days() []Day {
	return []Day{
		{"site_lost", "A site is unreachable", "site", false}, {"link_cut", "A link is cut", "link", true},
		{"far", "A site's latency triples", "site", false}, {"flap", "A link flaps", "link", true},
		{"killed", "A database process is killed and restarted", "site", true},
	}
}

// Day is a kind of bad day.
type Day struct {
	Key   string `json:"key"`
	Title string `json:"title"`
	// On is the target: a site or a link.
	On string `json:"on"`
	// Any means that the target may be random.
	Any bool `json:"any"`
}

func (n Needs) NeedsName() string { return n.Name }

func (n Needs) YAML() (string, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Answer it with: skerry choose %s.yaml", n.Name)
	line("cloud: %s", quoteYAML(n.Cloud))
	if len(n.Clients) > 0 {
		line("client: [%s] # where requests come from", quoteList(n.Clients))
	}
	line("load: {workload: %s, target: %s, records: %d}", quoteYAML(n.Workload), formatNumber(n.Target), n.Records)
	writeList(line, "must", n.Must)
	writeList(line, "bad_days", n.BadDays)
	if len(n.Prefer) > 0 {
		line("prefer: [%s] # the first ranks", quoteList(n.Prefer))
	}
	if len(n.Consider) > 0 {
		line("consider: [%s]", quoteList(n.Consider))
	}
	line("budget: %s", quoteYAML(n.Budget))
	return b.String(), nil
}

// writeList writes items that are YAML themselves, one per line.
func writeList(line func(string, ...any), key string, items []string) {
	if len(items) > 0 {
		line("%s:", key)
	}
	for _, item := range items {
		line("  - %s", strings.Join(strings.Fields(item), " "))
	}
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, w := range list {
		quoted[i] = quoteYAML(w)
	}
	return strings.Join(quoted, ", ")
}

// Check validates the needs as a file at path and plans the choice. The error is the first mistake.
func (n Needs) Check(path string, registry []database.About, memory int64) (text string, contest *choose.Contest, err error) {
	if text, err = n.YAML(); err != nil {
		return "", nil, err
	}
	if contest, err = Plan(path, text, registry, memory); err != nil {
		return text, nil, firstMistake(experiment.ListMistakes(err, path))
	}
	return text, contest, nil
}

// Plan plans the choice of the needs in text, a file at path, on a machine with memory bytes. The error is that of
// choose.Parse or choose.Plan.
func Plan(path, text string, registry []database.About, memory int64) (*choose.Contest, error) {
	needs, err := choose.Parse(path, []byte(text))
	if err != nil {
		return nil, err
	}
	return choose.Plan(needs, "", registry, choose.Options{Memory: memory})
}
