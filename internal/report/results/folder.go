package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/atomicfile"
	"skerry/internal/record"
)

const (
	dataDir    = "data"
	dataExt    = ".csv"
	overExt    = ".over.csv"
	pageExt    = ".md"
	tmplExt    = ".md.tmpl"
	svgExt     = ".svg"
	papersFile = "papers" + dataExt
	planFile   = "plan.yaml"
)

// Folder is a folder of pages with their templates and data beside them: docs/results.
type Folder struct {
	Dir string
	// Root is the repository, to which the plan's experiments are relative.
	Root string

	filling *fillCache // nil where no pages are being filled
}

// fillCache caches what many calls of all templates need.
type fillCache struct {
	plan  func() (Plan, error)
	takes map[string]stepEstimate // by step
}

// stepEstimate is how long a step is likely to take at most, and whether that is known.
type stepEstimate struct {
	takes time.Duration
	known bool
}

var _ PageSource = Folder{}

// readData reads what a step's data file holds. The error is page.NotYet for a step of the plan that has none.
func (f Folder) readData(step, ext string) ([]byte, error) {
	b, err := os.ReadFile(f.dataPath(step + ext))
	if errors.Is(err, fs.ErrNotExist) {
		plan, wrong := f.loadPlan()
		if wrong != nil {
			return nil, wrong
		}
		if plan.hasStep(step) {
			return nil, NotMeasuredError{Step: step}
		}
		return nil, fmt.Errorf("the plan has no step %s", step)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is kept of %s: %w", step, err)
	}
	return b, nil
}

// Points implements page.Source.
func (f Folder) Points(step string) ([]Point, error) {
	b, err := f.readData(step, overExt)
	if err != nil {
		return nil, err
	}
	rows, err := f.Rows(step)
	if err != nil {
		return nil, err
	}
	points, err := ReadPoints(bytes.NewReader(b), rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.dataPath(step+overExt), err)
	}
	return points, nil
}

// Rows implements page.Source.
func (f Folder) Rows(step string) ([]Row, error) {
	b, err := f.readData(step, dataExt)
	if err != nil {
		return nil, err
	}
	rows, err := ReadRows(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.dataPath(step+dataExt), err)
	}
	return rows, nil
}

// Papers implements page.Source; no item asks for all.
func (f Folder) Papers(item string) (out []DocumentValue, err error) {
	b, err := os.ReadFile(f.dataPath(papersFile))
	if err != nil {
		return nil, fmt.Errorf("reading the documents' values: %w", err)
	}
	all, err := ReadPapers(bytes.NewReader(b))
	for _, v := range all {
		if item == "" || v.Item == item {
			out = append(out, v)
		}
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no %s", f.dataPath(papersFile), item)
	}
	return out, err
}

func (f Folder) dataPath(name string) string { return filepath.Join(f.Dir, dataDir, name) }

func (f Folder) loadPlan() (Plan, error) {
	if f.filling != nil {
		return f.filling.plan()
	}
	return LoadPlan(filepath.Join(f.Dir, planFile))
}

func (f Folder) estimateStep(s Step) (e stepEstimate, err error) {
	if f.filling == nil {
		e.takes, e.known, err = s.EstimateTime(f.Root, false)
		return e, err
	}
	e, there := f.filling.takes[s.Name]
	if !there {
		if e.takes, e.known, err = s.EstimateTime(f.Root, false); err == nil {
			f.filling.takes[s.Name] = e
		}
	}
	return e, err
}

// CopyTemplates puts the pages' templates, their plan and the documents' values into another folder, without what was measured: pages
// to try. What was measured into that folder before stays.
func (f Folder) CopyTemplates(to Folder) error {
	names, err := f.templates()
	if err != nil {
		return err
	}
	for _, path := range append(names, filepath.Join(f.Dir, planFile), f.dataPath(papersFile)) {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("copying pages: %w", err)
		}
		inside, err := filepath.Rel(f.Dir, path)
		if err != nil {
			return fmt.Errorf("copying pages: %w", err)
		}
		if err := to.writeFile(filepath.Join(to.Dir, inside), b); err != nil {
			return err
		}
	}
	return nil
}

// ErrFewer means that a run did not end, and measured fewer trials than stand beside the pages already.
var ErrFewer = errors.New("the page keeps what an earlier run measured")

// SaveTrials writes the trials of a step beside the pages, and what they did over time where there is any. Of a run that
// measured nothing it writes nothing: what an earlier one measured stays. It stays too where a run that was not brought
// to its end measured fewer trials: the error is ErrFewer.
func (f Folder) SaveTrials(step string, rows []Row, over []Point, whole bool) error {
	n := measuredTrials(rows)
	if n == 0 {
		return nil
	}
	if !whole {
		earlier, err := f.Rows(step)
		if err != nil && !errors.As(err, &NotMeasuredError{}) {
			return err
		}
		if had := measuredTrials(earlier); had > n {
			return fmt.Errorf("%w: %d trials are there, and this run measured %d; the same command goes on with it", ErrFewer, had, n)
		}
	}
	var b bytes.Buffer
	if err := WriteRows(&b, rows); err != nil {
		return err
	}
	if err := f.writeFile(f.dataPath(step+dataExt), b.Bytes()); err != nil {
		return err
	}
	if len(over) == 0 { // what an earlier run did over time is not this one's
		if err := os.Remove(f.dataPath(step + overExt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an earlier run's data: %w", err)
		}
		return nil
	}
	b.Reset()
	if err := WritePoints(&b, over); err != nil {
		return err
	}
	return f.writeFile(f.dataPath(step+overExt), b.Bytes())
}

// measuredTrials counts the trials that measured something.
func measuredTrials(rows []Row) (n int) {
	for _, r := range rows {
		if r.State == record.TrialOK {
			n++
		}
	}
	return n
}

func (f Folder) templates() ([]string, error) {
	names, err := filepath.Glob(filepath.Join(f.Dir, "*"+tmplExt))
	if err != nil {
		return nil, fmt.Errorf("listing the templates of pages: %w", err)
	}
	return names, nil
}

// RenderFiles are the folder's pages as they follow from its data, with their pictures, by path.
func (f Folder) RenderFiles() (map[string][]byte, error) {
	names, err := f.templates()
	if err != nil {
		return nil, err
	}
	f.filling = &fillCache{sync.OnceValues(f.loadPlan), map[string]stepEstimate{}}
	files := map[string][]byte{}
	var failed error
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the template of a page: %w", err)
		}
		name := strings.TrimSuffix(filepath.Base(path), tmplExt)
		filled, err := FillPage(name, text, f)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		origin := fmt.Sprintf("<!-- Made from %s and data/ by make docs: change those. -->\n\n", filepath.Base(path))
		files[filepath.Join(f.Dir, name+pageExt)] = append([]byte(origin), filled.Text...)
		for name, picture := range filled.Pictures {
			files[f.dataPath(name)] = []byte(picture)
		}
	}
	return files, failed
}

// WritePages writes the pages as they follow from the data.
func (f Folder) WritePages() error {
	files, err := f.RenderFiles()
	if err != nil {
		return err
	}
	for path, b := range files {
		if err := f.writeFile(path, b); err != nil {
			return err
		}
	}
	return f.RemoveUnusedPictures(files)
}

// RemoveUnusedPictures removes pictures that are on none of the pages, whose files it is given.
func (f Folder) RemoveUnusedPictures(files map[string][]byte) error {
	pictures, err := filepath.Glob(f.dataPath("*" + svgExt))
	if err != nil {
		return fmt.Errorf("listing pictures: %w", err)
	}
	for _, path := range pictures {
		if files[path] != nil {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing a picture that is on no page: %w", err)
		}
	}
	return nil
}

func (f Folder) writeFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return atomicfile.File(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// isMeasured tells whether there are data of a step.
func (f Folder) isMeasured(s Step) (bool, error) {
	_, err := os.Stat(f.dataPath(s.Name + dataExt))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for what is kept of %s: %w", s.Name, err)
	}
	return true, nil
}

// Progress implements page.Source.
func (f Folder) Progress(name string) (measured, all int, err error) {
	plan, err := f.loadPlan()
	if err != nil {
		return 0, 0, err
	}
	i := slices.IndexFunc(plan.Pages, func(p PlanPage) bool { return p.Name == name })
	if i < 0 {
		return 0, 0, fmt.Errorf("the plan has no page %s", name)
	}
	for _, s := range plan.Pages[i].Steps {
		there, err := f.isMeasured(s)
		if err != nil {
			return 0, 0, err
		}
		if there {
			measured++
		}
	}
	return measured, len(plan.Pages[i].Steps), nil
}

// Missing implements page.Source. A page of which most is missing stands for its steps.
func (f Folder) Missing(steps []string) (out MissingSteps, err error) {
	plan, err := f.loadPlan()
	if err != nil {
		return out, err
	}
	known := true
	for _, p := range plan.Pages {
		asked := slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return !slices.Contains(steps, s.Name) })
		if len(asked) == 0 {
			continue
		}
		measured, all, err := f.Progress(p.Name)
		if err != nil {
			return out, err
		}
		whole := 2*measured < all
		if whole {
			asked = p.Steps
			out.Names = append(out.Names, p.Name)
		}
		for _, s := range asked {
			if !whole {
				out.Names = append(out.Names, s.Name)
			}
			e, err := f.estimateStep(s)
			if err != nil {
				return out, err
			}
			known = known && e.known
			out.Takes += e.takes
		}
	}
	if !known {
		out.Takes = 0
	}
	return out, nil
}
