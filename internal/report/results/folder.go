package results

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"skerry/internal/base/whole"
	"skerry/internal/report/results/data"
	"skerry/internal/report/results/page"
)

const (
	dataDir = "data"
	dataExt = ".csv"
	pageExt = ".md"
	papers  = "papers" + dataExt
)

// Folder is a folder of pages with their data beside them: docs/results.
type Folder string

var _ page.Source = Folder("")

// Rows implements page.Source.
func (f Folder) Rows(step string) ([]data.Row, error) {
	b, err := os.ReadFile(f.data(step + dataExt))
	if err != nil {
		return nil, fmt.Errorf("reading the trials of %s: %w", step, err)
	}
	rows, err := data.Read(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.data(step+dataExt), err)
	}
	return rows, nil
}

// Papers implements page.Source.
func (f Folder) Papers(item string) (out []page.Value, err error) {
	b, err := os.ReadFile(f.data(papers))
	if err != nil {
		return nil, fmt.Errorf("reading the documents' values: %w", err)
	}
	all, err := page.ReadPapers(bytes.NewReader(b))
	for _, v := range all {
		if v.Item == item {
			out = append(out, v)
		}
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no %s", f.data(papers), item)
	}
	return out, err
}

func (f Folder) data(name string) string { return filepath.Join(string(f), dataDir, name) }

// Keep writes the trials of a step beside the pages.
func (f Folder) Keep(step string, rows []data.Row) error {
	var b bytes.Buffer
	if err := data.Write(&b, rows); err != nil {
		return err
	}
	return f.write(f.data(step+dataExt), b.Bytes())
}

// Files are the folder's pages as they follow from its data, with their pictures, by path.
func (f Folder) Files() (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(string(f), "*"+pageExt))
	if err != nil {
		return nil, fmt.Errorf("listing pages: %w", err)
	}
	files := map[string][]byte{}
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a page: %w", err)
		}
		filled, err := page.Fill(strings.TrimSuffix(filepath.Base(path), pageExt), text, f)
		if err != nil {
			return nil, err
		}
		files[path] = filled.Text
		for name, picture := range filled.Pictures {
			files[f.data(name)] = []byte(picture)
		}
	}
	return files, nil
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
	return nil
}

func (f Folder) write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return whole.File(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
