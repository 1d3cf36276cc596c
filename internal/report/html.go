package report

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"path/filepath"

	"skerry/internal/base/whole"
	"skerry/internal/record"
)

// FileName is what a report is called in its run directory.
const FileName = "report.html"

//go:embed page/report.html
var pageHTML string

//go:embed page/style.css
var pageCSS string

// HTML writes a run's plain report: one page without scripts that needs nothing beside itself.
func HTML(w io.Writer, d *record.Dir) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"style": Style,
	}).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("reading the report's page: %w", err)
	}
	b := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(b, newView(newModel(d))), b.Flush()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// WriteHTML writes a run's plain report to a file: see WriteFile.
func WriteHTML(path string, d *record.Dir) (string, error) {
	return WriteFile(path, d, func(w io.Writer) error { return HTML(w, d) })
}

// WriteFile makes a run's report, which write writes, whole or not at all; path "" is
// report.html in the run directory. It returns the file's path.
func WriteFile(path string, d *record.Dir, write func(io.Writer) error) (string, error) {
	if path == "" {
		path = filepath.Join(d.Path, FileName)
	}
	if err := whole.File(path, write); err != nil {
		return "", err
	}
	return path, nil
}
