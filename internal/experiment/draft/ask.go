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

// Questions are put to a person, one line each.
type Questions struct {
	// Line reads an answer of one line, with what can be completed to. An error ends the asking.
	Line func(question string, choices []string) (string, error)
	Out  io.Writer
}

// Begin says how to answer.
func (q Questions) Begin() {
	fmt.Fprintln(q.Out, "Return takes what stands in brackets; Tab shows what there is; Ctrl-C writes nothing.")
}

// One asks until try takes the answer; what try says against it is told. Return, or the preset itself, changes nothing.
func (q Questions) One(question, preset string, choices []string, try func(answer string) error) error {
	for {
		text, err := q.Line(fmt.Sprintf("%s [%s]: ", question, preset), choices)
		if err != nil {
			return err
		}
		text = strings.TrimSpace(text)
		if text == "" || text == preset {
			return nil
		}
		if err = try(text); err == nil {
			return nil
		}
		fmt.Fprintln(q.Out, "  "+err.Error())
	}
}

// Asker asks for an experiment.
type Asker struct {
	Questions
	// Databases can be chosen.
	Databases []string
	// Check tells what is wrong with a draft so far, with its cloud where nothing is.
	Check func(Draft) (Places, error)
}

// Ask goes through all questions; what d says is the default of each. An answer that makes no
// valid experiment is told, and asked for again.
func (a Asker) Ask(d Draft) (Draft, error) {
	i := &inquiry{Asker: a, d: d}
	var err error
	if i.places, err = a.Check(d); err != nil {
		return d, err
	}
	a.Begin()
	for _, step := range i.steps() {
		if err := step(); err != nil {
			return i.d, err
		}
	}
	return i.d, nil
}

// inquiry is an asking under way: the draft so far, and what its cloud has.
type inquiry struct {
	Asker
	d      Draft
	places Places
}

// one asks until the answer, put into the draft, makes a valid one.
func (i *inquiry) one(question, preset string, choices []string, put func(*Draft, string) error) error {
	return i.One(question, preset, choices, func(text string) error {
		next := i.d
		if err := put(&next, text); err != nil {
			return err
		}
		found, err := i.Check(next)
		if err == nil {
			i.d, i.places = next, found
		}
		return err
	})
}

// steps are the questions in their order.
func (i *inquiry) steps() []func() error {
	text := func(field func(*Draft) *string) func(*Draft, string) error {
		return func(d *Draft, s string) error { *field(d) = s; return nil }
	}
	return []func() error{
		func() error {
			return i.one("Database", i.d.Database, i.Databases, text(func(d *Draft) *string { return &d.Database }))
		},
		func() error {
			return i.one("Topology: a preset or a file", i.d.Topology, topology.Presets(), func(d *Draft, s string) error {
				d.Topology, d.Client = s, ""
				return nil
			})
		},
		func() error {
			preset := i.d.Client
			if preset == "" && len(i.places.Sites) > 0 {
				preset = i.places.Sites[0]
			}
			return i.one("Site where the load comes from", preset, i.places.Sites, text(func(d *Draft) *string { return &d.Client }))
		},
		func() error {
			fmt.Fprintln(i.Out, "YCSB's workloads: a half updates, b 5 % updates, c reads, d the latest, e scans, f read-modify-write")
			return i.one("Workload", i.d.Workload, ycsb.Names(), text(func(d *Draft) *string { return &d.Workload }))
		},
		func() error {
			return i.one("Times every distance; several numbers are a trial each", numbers(i.d.Scales), nil, func(d *Draft, s string) (err error) {
				d.Scales, err = parseNumbers(s)
				return err
			})
		},
		func() error {
			return i.one("How long each trial measures", i.d.Time, nil, text(func(d *Draft) *string { return &d.Time }))
		},
		i.events,
		func() error {
			return i.one("Read every acknowledged write back at the end? yes or no", yesNo(i.d.Audit), []string{"yes", "no"}, func(d *Draft, s string) error {
				d.Audit = strings.HasPrefix(strings.ToLower(s), "y")
				return nil
			})
		},
		func() error {
			return i.one("Assertions, apart by semicolons; - for none", strings.Join(i.d.Assert, "; "), nil, func(d *Draft, s string) error {
				d.Assert = Split(s)
				return nil
			})
		},
		func() error {
			return i.one("Name of the experiment", i.d.Name, nil, text(func(d *Draft) *string { return &d.Name }))
		},
	}
}

// events asks for one event after the other until none is given.
func (i *inquiry) events() error {
	var ids []string
	fmt.Fprintln(i.Out, "Events that may happen meanwhile, as kill or kill=Pune or kill=Pune,at=10s,for=5s:")
	for _, o := range event.Offers() {
		ids = append(ids, o.ID)
		fmt.Fprintf(i.Out, "  %-10s %s\n", o.ID, strings.ToLower(o.Title))
	}
	for {
		text, err := i.Line("Event; nothing for no more: ", slices.Concat(ids, i.places.Nodes))
		if err != nil || strings.TrimSpace(text) == "" {
			return err
		}
		e, err := ParseEvent(text)
		if err == nil {
			next := i.d
			next.Events = append(slices.Clone(i.d.Events), e)
			if _, err = i.Check(next); err == nil {
				i.d = next
				continue
			}
		}
		fmt.Fprintln(i.Out, "  "+err.Error())
	}
}

// Split takes assertions apart that stand in one line; - is none.
func Split(text string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part != "" && part != "-" {
			list = append(list, part)
		}
	}
	return list
}

func parseNumbers(text string) (list []float64, err error) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == ';' }) {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %q is no number", ErrAnswer, part)
		}
		list = append(list, f)
	}
	return list, nil
}

func numbers(list []float64) string {
	parts := make([]string, len(list))
	for i, f := range list {
		parts[i] = Number(f)
	}
	return strings.Join(parts, ", ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
