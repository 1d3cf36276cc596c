package draft

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/event"
	"skerry/internal/load/ycsb"
	"skerry/internal/topology"
)

// Interview asks for the answers of a file, one per line.
type Interview[T any] struct {
	// Line reads one answer and completes it to one of choices. An error ends the interview.
	Line func(question string, choices []string) (string, error)
	Out  io.Writer
	// Databases are the choices.
	Databases []string
	// Questions returns the questions, which write their answers into draft. places are those of its
	// topology.
	Questions func(draft *T, places Places, databases []string) []Question
	// Check returns the places of a valid draft's topology, or the first mistake.
	Check func(draft T) (Places, error)
}

// Run asks all questions; draft has their defaults. It asks again after an answer that makes the file invalid.
func (i Interview[T]) Run(draft T) (T, error) {
	places, err := i.Check(draft)
	if err != nil {
		return draft, err
	}
	fmt.Fprintln(i.Out, "Return accepts the value in brackets; Tab lists the choices; Ctrl-C ends without writing a file.")
	for n := range i.Questions(&draft, places, i.Databases) {
		fmt.Fprint(i.Out, i.Questions(&draft, places, i.Databases)[n].about)
		for again := true; again; {
			next := draft
			q := i.Questions(&next, places, i.Databases)[n]
			text, err := i.Line(q.prompt(), q.choices)
			if err != nil {
				return draft, err
			}
			if text = strings.TrimSpace(text); text == "" || text == q.preset() {
				break
			}
			var found Places
			if err = q.set(text); err == nil {
				found, err = i.Check(next)
			}
			if err != nil {
				fmt.Fprintln(i.Out, "  "+err.Error())
				continue
			}
			draft, places, again = next, found, q.repeats()
		}
	}
	return draft, nil
}

// Question asks for one answer.
type Question struct {
	text string
	// into points to the answer: a string, bool, int64, float64, list of those, or list of events.
	into    any
	choices []string
	// empty is the default shown for an empty answer.
	empty string
	// about is printed before the question.
	about string
	// reset clears the answers that depend on this one.
	reset func()
}

// lines is a list of texts that contain commas, separated by semicolons.
type lines []string

func (q Question) repeats() bool {
	_, events := q.into.(*[]Event)
	return events
}

func (q Question) prompt() string {
	if q.repeats() {
		return q.text + ": "
	}
	return fmt.Sprintf("%s [%s]: ", q.text, q.preset())
}

func (q Question) preset() string {
	text := ""
	switch v := q.into.(type) {
	case *string:
		text = *v
	case *bool:
		text = map[bool]string{true: "yes", false: "no"}[*v]
	case *int64:
		text = strconv.FormatInt(*v, 10)
	case *float64:
		text = formatNumber(*v)
	case *[]float64:
		text = strings.Join(formatNumbers(*v), ", ")
	case *[]string:
		text = strings.Join(*v, ", ")
	case *lines:
		text = strings.Join(*v, "; ")
	}
	return firstNonBlank(text, q.empty)
}

func (q Question) set(text string) (err error) {
	switch v := q.into.(type) {
	case *string:
		*v = text
	case *bool:
		answer := strings.ToLower(text)
		if *v = strings.HasPrefix("yes", answer); !*v && !strings.HasPrefix("no", answer) {
			return fmt.Errorf("%w: %q is neither yes nor no", ErrAnswer, text)
		}
	case *int64:
		*v, err = strconv.ParseInt(text, 10, 64)
	case *float64:
		*v, err = strconv.ParseFloat(text, 64)
	case *[]float64:
		*v = nil
		for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; ", r) }) {
			f, err := strconv.ParseFloat(part, 64)
			if err != nil {
				return fmt.Errorf("%w: %q is not a number", ErrAnswer, part)
			}
			*v = append(*v, f)
		}
	case *[]string:
		*v = splitAnswer(text, ",;")
	case *lines:
		*v = splitAnswer(text, ";")
	case *[]Event:
		e, err := ParseEvent(text)
		if err != nil {
			return err
		}
		*v = append(slices.Clone(*v), e)
	}
	if err != nil {
		return fmt.Errorf("%w: %q is not a number", ErrAnswer, text)
	}
	if q.reset != nil {
		q.reset()
	}
	return nil
}

// splitAnswer splits a text at separators; "-" is an empty list.
func splitAnswer(text, separators string) []string {
	list := []string{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if part = strings.TrimSpace(part); part != "" && part != "-" {
			list = append(list, part)
		}
	}
	return list
}

const workloadHelp = "YCSB's workloads: a half updates, b 5 % updates, c reads, d the latest, e scans, f read-modify-write\n"

func (d *Experiment) Questions(p Places, databases []string) []Question {
	offers := "Events during the measurement, as kill or kill=Pune or kill=Pune,at=10s,for=5s:\n"
	var ids []string
	for _, o := range event.Offers() {
		ids = append(ids, o.ID)
		offers += fmt.Sprintf("  %-10s %s\n", o.ID, strings.ToLower(o.Title))
	}
	return []Question{
		{text: "Database", into: &d.Database, choices: databases},
		{text: "Topology: a preset or a file", into: &d.Topology, choices: topology.Presets(), reset: func() { d.Client = "" }},
		{text: "Site where the load comes from", into: &d.Client, choices: p.Sites, empty: p.first()},
		{text: "Workload", into: &d.Workload, choices: ycsb.BuiltinNames(), about: workloadHelp},
		{text: "Distance scale; several numbers are a trial each", into: &d.Scales},
		{text: "Duration of each measurement", into: &d.Time},
		{text: "Event; Return for no more", into: &d.Events, choices: slices.Concat(ids, p.Nodes), about: offers},
		{text: "Audit acknowledged writes at the end? yes or no", into: &d.Audit, choices: []string{"yes", "no"}},
		{text: "Assertions, separated by semicolons; - for none", into: (*lines)(&d.Assert)},
		{text: "Name of the experiment", into: &d.Name},
	}
}

func (n *Needs) Questions(p Places, databases []string) []Question {
	days := ""
	var random []string
	for _, d := range Days() {
		random = append(random, d.Key+": any")
		days += fmt.Sprintf("  %-15s %s\n", d.Key+": "+d.On, strings.ToLower(d.Title))
	}
	return []Question{
		{text: "Your cloud: a preset or a topology file", into: &n.Cloud, choices: topology.Presets(), reset: func() {
			n.Clients = nil
			n.BadDays = slices.DeleteFunc(slices.Clone(n.BadDays), func(d string) bool { return !strings.HasSuffix(d, ": any") })
		}},
		{text: "Sites that requests come from", into: &n.Clients, choices: p.Sites, empty: p.first()},
		{text: "Workload", into: &n.Workload, choices: ycsb.BuiltinNames(), about: workloadHelp},
		{text: "Target rate in operations a second; 0 for as many as possible", into: &n.Target},
		{text: "Records", into: &n.Records},
		{text: "Requirements, separated by semicolons; - for none", into: (*lines)(&n.Must),
			choices: []string{"read: linearizable", "read: monotonic", "lost_writes == 0"}},
		{text: "Bad days to survive, separated by semicolons; - for none", into: (*lines)(&n.BadDays), choices: random, about: days},
		{text: "Preferences, the first decides", into: &n.Prefer},
		{text: "Databases; - for all that are installed", into: &n.Consider, choices: databases, empty: "-"},
		{text: "Time budget", into: &n.Budget},
	}
}
