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

// Folder is a folder of pages with their templates and data: docs/results.
type Folder struct {
	Dir string
	// Root is the repository. The plan's experiments are relative to it.
	Root string

	filling *fillCache
}

type fillCache struct {
	plan  func() (Plan, error)
	takes map[string]stepEstimate // by step
}

type stepEstimate struct {
	takes time.Duration
	known bool
}

var _ pageSource = Folder{}

// readData reads a data file of a step. The error is notMeasuredError for a planned step without
// data.
func (f Folder) readData(step, ext string) ([]byte, error) {
	b, err := os.ReadFile(f.dataPath(step + ext))
	if errors.Is(err, fs.ErrNotExist) {
		plan, wrong := f.loadPlan()
		if wrong != nil {
			return nil, wrong
		}
		if plan.hasStep(step) {
			return nil, notMeasuredError{Step: step}
		}
		return nil, fmt.Errorf("no step %s in the plan", step)
	}
	if err != nil {
		return nil, fmt.Errorf("read data of step %s: %w", step, err)
	}
	return b, nil
}

func (f Folder) Points(step string) ([]Point, error) {
	b, err := f.readData(step, overExt)
	if err != nil {
		return nil, err
	}
	rows, err := f.Rows(step)
	if err != nil {
		return nil, err
	}
	points, err := readPoints(bytes.NewReader(b), rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.dataPath(step+overExt), err)
	}
	return points, nil
}

func (f Folder) Rows(step string) ([]Row, error) {
	b, err := f.readData(step, dataExt)
	if err != nil {
		return nil, err
	}
	rows, err := readRows(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.dataPath(step+dataExt), err)
	}
	return rows, nil
}

func (f Folder) Papers(item string) (out []DocumentValue, err error) {
	b, err := os.ReadFile(f.dataPath(papersFile))
	if err != nil {
		return nil, fmt.Errorf("read the documents' values: %w", err)
	}
	all, err := readPapers(bytes.NewReader(b))
	for _, v := range all {
		if item == "" || v.Item == item {
			out = append(out, v)
		}
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no item %s", f.dataPath(papersFile), item)
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

// CopyTemplates copies the templates, the plan and the documents' values to another folder, without
// measured data. Existing data of that folder stay.
func (f Folder) CopyTemplates(to Folder) error {
	names, err := f.templates()
	if err != nil {
		return err
	}
	for _, path := range append(names, filepath.Join(f.Dir, planFile), f.dataPath(papersFile)) {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("copy templates: %w", err)
		}
		inside, err := filepath.Rel(f.Dir, path)
		if err != nil {
			return fmt.Errorf("copy templates: %w", err)
		}
		if err := to.writeFile(filepath.Join(to.Dir, inside), b); err != nil {
			return err
		}
	}
	return nil
}

// ErrFewer means that an incomplete run measured fewer trials than the stored data have.
var ErrFewer = errors.New("keeping the data of an earlier run")

// SaveTrials stores the trials of a step and their figures over time. It keeps earlier data if the
// run measured nothing. It also keeps them, with ErrFewer, if the run is incomplete and has fewer
// trials.
func (f Folder) SaveTrials(step string, rows []Row, over []Point, whole bool) error {
	n := measuredTrials(rows)
	if n == 0 {
		return nil
	}
	if !whole {
		earlier, err := f.Rows(step)
		if err != nil && !errors.As(err, &notMeasuredError{}) {
			return err
		}
		if had := measuredTrials(earlier); had > n {
			return fmt.Errorf("%w: it has %d trials, this run has %d; repeat the command to continue the run", ErrFewer, had, n)
		}
	}
	var b bytes.Buffer
	if err := writeRows(&b, rows); err != nil {
		return err
	}
	if err := f.writeFile(f.dataPath(step+dataExt), b.Bytes()); err != nil {
		return err
	}
	if len(over) == 0 { // the points of an earlier run do not belong to these rows
		if err := os.Remove(f.dataPath(step + overExt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove data of an earlier run: %w", err)
		}
		return nil
	}
	b.Reset()
	if err := writePoints(&b, over); err != nil {
		return err
	}
	return f.writeFile(f.dataPath(step+overExt), b.Bytes())
}

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
		return nil, fmt.Errorf("list templates: %w", err)
	}
	return names, nil
}

// RenderFiles returns the pages and pictures rendered from the data, by path.
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
			return nil, fmt.Errorf("read template: %w", err)
		}
		name := strings.TrimSuffix(filepath.Base(path), tmplExt)
		filled, err := fillPage(name, text, f)
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

// WritePages renders and writes all pages and pictures.
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

// RemoveUnusedPictures removes pictures that are not among the rendered files.
func (f Folder) RemoveUnusedPictures(files map[string][]byte) error {
	pictures, err := filepath.Glob(f.dataPath("*" + svgExt))
	if err != nil {
		return fmt.Errorf("list pictures: %w", err)
	}
	for _, path := range pictures {
		if files[path] != nil {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove unused picture: %w", err)
		}
	}
	return nil
}

func (f Folder) writeFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

func (f Folder) isMeasured(s Step) (bool, error) {
	_, err := os.Stat(f.dataPath(s.Name + dataExt))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find data of step %s: %w", s.Name, err)
	}
	return true, nil
}

func (f Folder) Progress(name string) (measured, all int, err error) {
	plan, err := f.loadPlan()
	if err != nil {
		return 0, 0, err
	}
	i := slices.IndexFunc(plan.Pages, func(p PlanPage) bool { return p.Name == name })
	if i < 0 {
		return 0, 0, fmt.Errorf("no page %s in the plan", name)
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

// Missing implements PageSource. It names a page instead of its steps if most of the page is
// missing.
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
