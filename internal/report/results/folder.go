package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/atomicfile"
	"skerry/internal/record"
	"skerry/internal/report/results/data"
	"skerry/internal/report/results/page"
)

const (
	dataDir  = "data"
	dataExt  = ".csv"
	overExt  = ".over.csv"
	pageExt  = ".md"
	tmplExt  = ".md.tmpl"
	svgExt   = ".svg"
	papers   = "papers" + dataExt
	planFile = "plan.yaml"
)

// Folder is a folder of pages with their templates and data beside them: docs/results.
type Folder struct {
	Dir string
	// Root is the repository, to which the plan's experiments are relative.
	Root string

	filling *filling // nil where no pages are being filled
}

// filling caches what many calls of all templates need.
type filling struct {
	plan  func() (Plan, error)
	takes map[string]estimate // by step
}

// estimate is how long a step is likely to take at most, and whether that is known.
type estimate struct {
	takes time.Duration
	known bool
}

var _ page.Source = Folder{}

// read reads what a step's data file holds. The error is page.NotYet for a step of the plan that has none.
func (f Folder) read(step, ext string) ([]byte, error) {
	b, err := os.ReadFile(f.data(step + ext))
	if errors.Is(err, fs.ErrNotExist) {
		plan, wrong := f.plan()
		if wrong != nil {
			return nil, wrong
		}
		if plan.has(step) {
			return nil, page.NotYet{Step: step}
		}
		return nil, fmt.Errorf("the plan has no step %s", step)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is kept of %s: %w", step, err)
	}
	return b, nil
}

// Points implements page.Source.
func (f Folder) Points(step string) ([]data.Point, error) {
	b, err := f.read(step, overExt)
	if err != nil {
		return nil, err
	}
	rows, err := f.Rows(step)
	if err != nil {
		return nil, err
	}
	points, err := data.ReadPoints(bytes.NewReader(b), rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.data(step+overExt), err)
	}
	return points, nil
}

// Rows implements page.Source.
func (f Folder) Rows(step string) ([]data.Row, error) {
	b, err := f.read(step, dataExt)
	if err != nil {
		return nil, err
	}
	rows, err := data.Read(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.data(step+dataExt), err)
	}
	return rows, nil
}

// Papers implements page.Source; no item asks for all.
func (f Folder) Papers(item string) (out []page.Value, err error) {
	b, err := os.ReadFile(f.data(papers))
	if err != nil {
		return nil, fmt.Errorf("reading the documents' values: %w", err)
	}
	all, err := page.ReadPapers(bytes.NewReader(b))
	for _, v := range all {
		if item == "" || v.Item == item {
			out = append(out, v)
		}
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no %s", f.data(papers), item)
	}
	return out, err
}

func (f Folder) data(name string) string { return filepath.Join(f.Dir, dataDir, name) }

func (f Folder) plan() (Plan, error) {
	if f.filling != nil {
		return f.filling.plan()
	}
	return Load(filepath.Join(f.Dir, planFile))
}

func (f Folder) estimate(s Step) (e estimate, err error) {
	if f.filling == nil {
		e.takes, e.known, err = s.Time(f.Root, false)
		return e, err
	}
	e, there := f.filling.takes[s.Name]
	if !there {
		if e.takes, e.known, err = s.Time(f.Root, false); err == nil {
			f.filling.takes[s.Name] = e
		}
	}
	return e, err
}

// Copy puts the pages' templates, their plan and the documents' values into another folder, without what was measured: pages
// to try. What was measured into that folder before stays.
func (f Folder) Copy(to Folder) error {
	names, err := f.templates()
	if err != nil {
		return err
	}
	for _, path := range append(names, filepath.Join(f.Dir, planFile), f.data(papers)) {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("copying pages: %w", err)
		}
		inside, err := filepath.Rel(f.Dir, path)
		if err != nil {
			return fmt.Errorf("copying pages: %w", err)
		}
		if err := to.write(filepath.Join(to.Dir, inside), b); err != nil {
			return err
		}
	}
	return nil
}

// ErrFewer means that a run did not end, and measured fewer trials than stand beside the pages already.
var ErrFewer = errors.New("the page keeps what an earlier run measured")

// Keep writes the trials of a step beside the pages, and what they did over time where there is any. Of a run that
// measured nothing it writes nothing: what an earlier one measured stays. It stays too where a run that was not brought
// to its end measured fewer trials: the error is ErrFewer.
func (f Folder) Keep(step string, rows []data.Row, over []data.Point, whole bool) error {
	n := measuredTrials(rows)
	if n == 0 {
		return nil
	}
	if !whole {
		earlier, err := f.Rows(step)
		if err != nil && !errors.As(err, &page.NotYet{}) {
			return err
		}
		if had := measuredTrials(earlier); had > n {
			return fmt.Errorf("%w: %d trials are there, and this run measured %d; the same command goes on with it", ErrFewer, had, n)
		}
	}
	var b bytes.Buffer
	if err := data.Write(&b, rows); err != nil {
		return err
	}
	if err := f.write(f.data(step+dataExt), b.Bytes()); err != nil {
		return err
	}
	if len(over) == 0 { // what an earlier run did over time is not this one's
		if err := os.Remove(f.data(step + overExt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an earlier run's data: %w", err)
		}
		return nil
	}
	b.Reset()
	if err := data.WritePoints(&b, over); err != nil {
		return err
	}
	return f.write(f.data(step+overExt), b.Bytes())
}

// measuredTrials counts the trials that measured something.
func measuredTrials(rows []data.Row) (n int) {
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

// Files are the folder's pages as they follow from its data, with their pictures, by path.
func (f Folder) Files() (map[string][]byte, error) {
	names, err := f.templates()
	if err != nil {
		return nil, err
	}
	f.filling = &filling{sync.OnceValues(f.plan), map[string]estimate{}}
	files := map[string][]byte{}
	var failed error
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the template of a page: %w", err)
		}
		name := strings.TrimSuffix(filepath.Base(path), tmplExt)
		filled, err := page.Fill(name, text, f)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		origin := fmt.Sprintf("<!-- Made from %s and data/ by make docs: change those. -->\n\n", filepath.Base(path))
		files[filepath.Join(f.Dir, name+pageExt)] = append([]byte(origin), filled.Text...)
		for name, picture := range filled.Pictures {
			files[f.data(name)] = []byte(picture)
		}
	}
	return files, failed
}

// Fill writes the pages as they follow from the data.
func (f Folder) Fill() error {
	files, err := f.Files()
	if err != nil {
		return err
	}
	for path, b := range files {
		if err := f.write(path, b); err != nil {
			return err
		}
	}
	return f.Tidy(files)
}

// Tidy removes pictures that are on none of the pages, whose files it is given.
func (f Folder) Tidy(files map[string][]byte) error {
	pictures, err := filepath.Glob(f.data("*" + svgExt))
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

func (f Folder) write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return atomicfile.File(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
