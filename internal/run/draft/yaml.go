package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/suggest"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

// YAML is the text of the experiment file. The error wraps ErrAnswer.
func (d Experiment) YAML() (string, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Run it with: skerry run %s.yaml", d.Name)
	line("name: %s", word(d.Name))
	line("topology: %s", word(d.Topology))
	if d.Client != "" {
		line("client: %s # where the load comes from", word(d.Client))
	}
	line("database: %s", word(d.Database))
	line("workload: {name: %s, records: %d, threads: %d}", word(d.Workload), d.Records, d.Threads)
	if d.Endless {
		line("stop: {operations: %d} # until Ctrl-C", experiment.Endless)
	} else {
		line("stop: {time: %s}", word(d.Time))
	}
	switch len(d.Scales) {
	case 0:
	case 1:
		line("scale: %s # times every distance", number(d.Scales[0]))
	default:
		line("matrix:\n  scale: [%s] # times every distance", strings.Join(numbers(d.Scales), ", "))
	}
	line("repetitions: %d", d.Repetitions)
	if len(d.Events) > 0 {
		line("events:")
	}
	for i, e := range d.Events {
		text, err := d.event(i, e)
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
		line("  - %s", word(a))
	}
	return b.String(), nil
}

// event writes an event in one line.
func (d Experiment) event(i int, e Event) (string, error) {
	offers := event.Offers()
	at := slices.IndexFunc(offers, func(o event.Offer) bool { return o.ID == e.Offer })
	if at < 0 {
		return "", unknownOffer(e.Offer, offers)
	}
	o := offers[at]
	begins, lasts, err := d.times(i)
	if err != nil {
		return "", err
	}
	what, err := target(o, e.Target)
	if err != nil {
		return "", err
	}
	if o.Amount != nil {
		amount := e.Amount
		if amount == "" {
			amount = o.Amount.Value
		}
		what += fmt.Sprintf(", %s: %s", o.Amount.Key, word(amount))
	}
	return fmt.Sprintf("{name: %s-%d, at: %s, for: %s, %s: {%s}}", o.ID, i+1, word(or(e.At, begins.String())), word(or(e.For, lasts.String())), o.Kind, what), nil
}

// target is whom an event is aimed at.
func target(o event.Offer, name string) (string, error) {
	switch {
	case name != "":
		return fmt.Sprintf("%s: [%s]", o.Targets, word(name)), nil
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

func or(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return strings.TrimSpace(text)
}

// plain is what YAML takes for itself without quotes, also inside [ ] and { }.
var plain = regexp.MustCompile(`^[A-Za-z0-9/.][A-Za-z0-9~/._+%:=-]*( [A-Za-z0-9<>=./%-]+)*$`)

// special are words that YAML takes for something other than a text, and pairs in the making.
var special = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|~)$|:$|: `)

// word writes a text of one line so that YAML reads the same text, or, where it is one, a number.
func word(text string) string {
	if plain.MatchString(text) && !special.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "'", "''") + "'"
}

// number writes a number as YAML reads it.
func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func numbers(list []float64) []string {
	texts := make([]string, len(list))
	for i, f := range list {
		texts[i] = number(f)
	}
	return texts
}
