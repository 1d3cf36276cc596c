package draft

import (
	"fmt"
	"strings"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/run/choose"
)

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

// NeedsName implements File.
func (n Needs) NeedsName() string { return n.Name }

// YAML implements File.
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
