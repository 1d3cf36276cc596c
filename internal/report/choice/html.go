package choice

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/report"
	"skerry/internal/run/choose"
)

//go:embed page.html
var page string

//go:embed style.css
var style string

type view struct {
	Answer choose.Answer
	// First is the answer's first sentence, Then what follows it.
	First, Then string
	Basis       string
	Needs       []string
	Rows        []row
	Take        *take
	// TradeOffs are pictures of the first preferred figure against each of the others.
	TradeOffs []template.HTML
	Days      []dayView
	Files     []fileView
}

type row struct {
	choose.Verdict
	Shown  []shownFigure
	Chance string
	Cells  []cell
}

// shownFigure is a preferred figure, with those of each client.
type shownFigure struct {
	Text   string
	Places []string
}

// take is what somebody who follows the answer sets up.
type take struct {
	choose.Verdict
	Settings []string
}

type cell struct{ State, Class, Evidence string }

type dayView struct {
	Name  string
	Chart template.HTML
}

type fileView struct{ Who, Day, File, Runs string }

// HTML writes a page that needs nothing beside itself. Runs are read from the choice's folder.
func HTML(w io.Writer, a choose.Answer, dir string) error {
	t, err := template.New("choice").Funcs(template.FuncMap{"style": func() template.CSS { return report.Style() + template.CSS(style) }}).Parse(page)
	if err != nil {
		return fmt.Errorf("reading the answer's page: %w", err)
	}
	v := view{Answer: a, Basis: Basis(a), Needs: needsOf(a)}
	v.First = a.Sentence
	if first, then, more := strings.Cut(a.Sentence, ". "); more {
		v.First, v.Then = first+".", then
	}
	for _, x := range a.Candidates {
		r := row{Verdict: x, Chance: wins(x)}
		for i, name := range a.Prefer {
			f := shownFigure{Text: value(x, name)}
			for _, p := range x.Places {
				if i == 0 {
					f.Places = append(f.Places, strings.TrimSuffix(p.Name, "."+name)+" "+p.String())
				}
			}
			r.Shown = append(r.Shown, f)
		}
		for _, need := range v.Needs {
			r.Cells = append(r.Cells, cellOf(x, need))
		}
		v.Rows = append(v.Rows, r)
		for _, day := range sorted(x.Files) {
			v.Files = append(v.Files, fileView{x.Label, day, x.Files[day], fmt.Sprint(len(x.Runs[day]), " in ", filepath.Dir(x.Runs[day][0]))})
		}
	}
	v.Take = takeOf(a)
	for i := 1; i < len(a.Prefer); i++ {
		if picture := tradeOff(a, i); picture != "" {
			v.TradeOffs = append(v.TradeOffs, picture)
		}
	}
	if v.Days, err = badDays(a, dir); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(b, v), b.Flush()); err != nil {
		return fmt.Errorf("writing the answer's page: %w", err)
	}
	return nil
}

// needsOf are all needs, each once.
func needsOf(a choose.Answer) (needs []string) {
	for _, v := range a.Candidates {
		for _, n := range v.Needs {
			if !slices.Contains(needs, n.Text) {
				needs = append(needs, n.Text)
			}
		}
	}
	return needs
}

// cellOf is what became of a need over all days, with the evidence.
func cellOf(v choose.Verdict, need string) cell {
	said := over(v, need)
	class := map[string]string{choose.Met: "good", choose.Undecided: "busy", choose.NotMet: "bad"}
	return cell{State: said[1], Class: class[said[1]], Evidence: said[2]}
}

// takeOf is the winner's settings, nil where there is none.
func takeOf(a choose.Answer) *take {
	if len(a.Candidates) == 0 || a.Candidates[0].Out != "" {
		return nil
	}
	t := &take{Verdict: a.Candidates[0]}
	for _, name := range choose.OptionNames(t.Candidate) {
		t.Settings = append(t.Settings, fmt.Sprintf("%s: %v", name, t.Options[name]))
	}
	return t
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
