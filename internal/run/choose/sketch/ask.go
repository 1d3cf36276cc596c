package sketch

import (
	"fmt"
	"strconv"
	"strings"

	"skerry/internal/experiment/draft"
	"skerry/internal/load/ycsb"
	"skerry/internal/topology"
)

// Asker asks for needs.
type Asker struct {
	draft.Questions
	// Databases can be considered.
	Databases []string
	// Check tells what is wrong with a sketch so far, with its cloud where nothing is.
	Check func(Sketch) (draft.Places, error)
}

// Ask goes through all questions; what s says is the default of each. An answer that makes no valid needs is told, and
// asked for again.
func (a Asker) Ask(s Sketch) (Sketch, error) {
	places, err := a.Check(s)
	if err != nil {
		return s, err
	}
	a.Begin()
	one := func(question, preset string, choices []string, put func(*Sketch, string) error) func() error {
		return func() error {
			return a.One(question, preset, choices, func(answer string) error {
				next := s
				if err := put(&next, answer); err != nil {
					return err
				}
				found, err := a.Check(next)
				if err == nil {
					s, places = next, found
				}
				return err
			})
		}
	}
	steps := []func() error{
		one("Your cloud: a preset or a topology file", s.Cloud, topology.Presets(), func(s *Sketch, answer string) error {
			s.Cloud, s.Clients, s.BadDays = answer, nil, general(s.BadDays)
			return nil
		}),
		func() error {
			preset := strings.Join(s.Clients, ", ")
			if preset == "" && len(places.Sites) > 0 {
				preset = places.Sites[0]
			}
			return one("Sites that requests come from", preset, places.Sites, func(s *Sketch, answer string) error { s.Clients = names(answer); return nil })()
		},
		one("Workload: a half updates, b 5 % updates, c reads, d the latest, e scans, f read-modify-write", s.Workload, ycsb.Names(),
			func(s *Sketch, answer string) error { s.Workload = answer; return nil }),
		one("Operations a second; 0 for as many as there can be", draft.Number(s.Target), nil, func(s *Sketch, answer string) (err error) {
			if s.Target, err = strconv.ParseFloat(answer, 64); err != nil {
				return fmt.Errorf("%w: %q is no number", draft.ErrAnswer, answer)
			}
			return nil
		}),
		one("Records", strconv.FormatInt(s.Records, 10), nil, func(s *Sketch, answer string) (err error) {
			if s.Records, err = strconv.ParseInt(answer, 10, 64); err != nil {
				return fmt.Errorf("%w: %q is no number", draft.ErrAnswer, answer)
			}
			return nil
		}),
		one("What it must do, apart by semicolons; - for nothing", strings.Join(s.Must, "; "), []string{"read: linearizable", "read: monotonic", "lost_writes == 0"},
			func(s *Sketch, answer string) error { s.Must = draft.Split(answer); return nil }),
		func() error {
			var can []string
			for _, d := range Days() {
				can = append(can, d.Key+": any")
				fmt.Fprintf(a.Out, "  %-15s %s\n", d.Key+": "+d.On, strings.ToLower(d.Title))
			}
			return one("Bad days that it must live through, apart by semicolons; - for none", strings.Join(s.BadDays, "; "), can,
				func(s *Sketch, answer string) error { s.BadDays = draft.Split(answer); return nil })()
		},
		one("What to choose by among those that do, the first ranks", strings.Join(s.Prefer, ", "), nil, func(s *Sketch, answer string) error { s.Prefer = names(answer); return nil }),
		one("Databases; - for all that are installed", or(strings.Join(s.Consider, ", "), "-"), a.Databases, func(s *Sketch, answer string) error { s.Consider = names(answer); return nil }),
		one("How long it may take", s.Budget, nil, func(s *Sketch, answer string) error { s.Budget = answer; return nil }),
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// general are the bad days that name no place: another cloud has other ones.
func general(days []string) (left []string) {
	for _, d := range days {
		if strings.HasSuffix(d, ": any") {
			left = append(left, d)
		}
	}
	return left
}

// names are apart by commas; - is none.
func names(text string) []string {
	return draft.Split(strings.ReplaceAll(text, ",", ";"))
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
