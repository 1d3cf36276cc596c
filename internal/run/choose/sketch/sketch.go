// Package sketch makes the text of a needs file from a few answers, as skerry init --needs and the
// dashboard's form ask for them:
//
//	answers ─► Sketch ─► YAML ─► choose.Parse and choose.Plan, like any file that a person wrote
//
// A sketch says nothing that a needs file cannot, and checks nothing that planning the choice does not.
package sketch

import (
	"errors"
	"fmt"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/experiment/draft"
	"skerry/internal/run/choose"
)

// Sketch is what was answered.
type Sketch struct {
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

// Default is a sketch that can be chosen for as it is.
func Default() Sketch {
	return Sketch{
		Name: "needs", Cloud: "azure8", Clients: []string{"Singapore"}, Workload: "b", Target: 200, Records: 10000,
		Must:    []string{"p99 < 400ms", "availability > 99%", "lost_writes == 0", "read: any"},
		BadDays: []string{"link_cut: any", "killed: any"}, Prefer: []string{"p99", "cost.memory"}, Consider: []string{}, Budget: "40min",
	}
}

// Days are what a line of bad_days can begin with, in the words of a form.
func Days() []Day {
	return []Day{
		{"site_lost", "A site that nobody reaches", "site", false}, {"link_cut", "A link is cut", "link", true},
		{"far", "A site's links get three times as long", "site", false}, {"flap", "A link comes and goes", "link", true},
		{"killed", "A database is killed, and starts again", "site", true},
	}
}

// Day is a kind of bad day.
type Day struct {
	Key   string `json:"key"`
	Title string `json:"title"`
	// On is what it happens to: a site, or a link.
	On string `json:"on"`
	// Any says that it may be drawn at random.
	Any bool `json:"any"`
}

// YAML is the text of the needs file.
func (s Sketch) YAML() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Answer it with: skerry choose %s.yaml", s.Name)
	line("cloud: %s", draft.Word(s.Cloud))
	if len(s.Clients) > 0 {
		line("client: [%s] # where requests come from", words(s.Clients))
	}
	line("load: {workload: %s, target: %s, records: %d}", draft.Word(s.Workload), draft.Number(s.Target), s.Records)
	list(line, "must", s.Must)
	list(line, "bad_days", s.BadDays)
	if len(s.Prefer) > 0 {
		line("prefer: [%s] # the first ranks", words(s.Prefer))
	}
	if len(s.Consider) > 0 {
		line("consider: [%s]", words(s.Consider))
	}
	line("budget: %s", draft.Word(s.Budget))
	return b.String()
}

// list writes lines that are YAML of their own, each in one line.
func list(line func(string, ...any), key string, items []string) {
	if len(items) > 0 {
		line("%s:", key)
	}
	for _, item := range items {
		line("  - %s", strings.Join(strings.Fields(item), " "))
	}
}

func words(list []string) string {
	quoted := make([]string, len(list))
	for i, w := range list {
		quoted[i] = draft.Word(w)
	}
	return strings.Join(quoted, ", ")
}

// Check makes the file of a sketch and plans its choice as that of a file at path. The error is the first thing that is wrong,
// without the line of a file that nobody has seen yet.
func (s Sketch) Check(path string, registry []database.About, memory int64) (*choose.Contest, error) {
	contest, err := Plan(path, s.YAML(), registry, memory)
	var mistakes strict.Problems
	if errors.As(err, &mistakes) {
		return nil, fmt.Errorf("%w: %s", draft.ErrAnswer, strings.TrimSuffix(mistakes[0].Message+"; "+mistakes[0].Hint, "; "))
	}
	return contest, err
}

// Plan plans the choice that a text at path would be, on a machine of so many bytes of memory: who would be raced, and who
// is left out. The error is that of choose.Parse or choose.Plan.
func Plan(path, text string, registry []database.About, memory int64) (*choose.Contest, error) {
	needs, err := choose.Parse(path, []byte(text))
	if err != nil {
		return nil, err
	}
	return choose.Plan(needs, "", registry, choose.How{Memory: memory})
}
