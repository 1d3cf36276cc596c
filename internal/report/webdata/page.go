package webdata

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/atomicfile"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/compare"
)

const (
	marker = "<!--skerry:data-->"
	title  = "<title>Skerry report</title>"
)

// ErrPage means that a file is not the report page of the front end.
var ErrPage = errors.New("not a report page")

// FileName is the name of the report in its run directory.
const FileName = "report.html"

// WriteFile atomically writes a run's report and returns its path. An empty path means FileName in
// the run directory.
func WriteFile(path string, page []byte, d *record.Dir) (string, error) {
	if path == "" {
		path = filepath.Join(d.Path, FileName)
	}
	if err := atomicfile.Write(path, func(w io.Writer) error { return Write(w, page, d) }); err != nil {
		return "", err
	}
	return path, nil
}

// Write writes a run's report: the page with the run's documents instead of its marker. Each
// document is gzipped JSON in base64, in a script element that browsers do not execute, so names in
// a run cannot become markup. For readers without JavaScript the page contains the table of skerry
// show.
func Write(w io.Writer, page []byte, d *record.Dir) error {
	return fillPage(w, page, report.Sanitize(d.Run.Name)+" – Skerry report", func(w io.Writer) error {
		figures := report.NewFigures(d)
		if err := writeData(w, d, newRun(d, figures)); err != nil {
			return err
		}
		return writeNoScript(w, func(w io.Writer) error { return figures.Text(w, report.TextOptions{}) })
	})
}

// WriteComparison writes a comparison: the page of reports with the comparison's document.
func WriteComparison(w io.Writer, page []byte, r compare.Report) error {
	return fillPage(w, page, "Comparison – Skerry", func(w io.Writer) error {
		document, err := encodeDocument("comparison", r)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, document); err != nil {
			return err
		}
		return writeNoScript(w, func(w io.Writer) error { return r.Text(w, true) })
	})
}

// fillPage writes the page with a name as its title, and content instead of its marker.
func fillPage(w io.Writer, page []byte, name string, content func(io.Writer) error) error {
	before, after, ok := bytes.Cut(page, []byte(marker))
	if !ok || !bytes.Contains(before, []byte(title)) {
		return ErrPage
	}
	b := bufio.NewWriter(w)
	b.Write(bytes.Replace(before, []byte(title), []byte("<title>"+html.EscapeString(name)+"</title>"), 1))
	if err := content(b); err != nil {
		return err
	}
	b.Write(after)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func writeData(w io.Writer, d *record.Dir, run Run) error {
	blocks := make([]string, len(run.Trials))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	byID := map[int]record.Trial{}
	for _, t := range d.Summary.Trials {
		byID[t.ID] = t
	}
	for i, t := range run.Trials {
		if !t.Detail {
			continue
		}
		g.Go(func() (err error) {
			blocks[i], err = encodeDocument("trial-"+strconv.Itoa(t.ID), NewDetail(d, byID[t.ID], len(run.Trials)))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	head, err := encodeDocument("run", run)
	if err != nil {
		return err
	}
	for _, b := range append([]string{head}, blocks...) {
		if _, err := io.WriteString(w, b); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
}

func encodeDocument(name string, v any) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<script type=\"application/x-skerry\" id=\"data-%s\">", name)
	text := base64.NewEncoder(base64.StdEncoding, &b)
	small, err := gzip.NewWriterLevel(text, gzip.BestCompression)
	if err != nil {
		return "", fmt.Errorf("compress report data: %w", err)
	}
	if err := errors.Join(json.NewEncoder(small).Encode(v), small.Close(), text.Close()); err != nil {
		return "", fmt.Errorf("compress report data: %w", err)
	}
	b.WriteString("</script>\n")
	return b.String(), nil
}

func writeNoScript(w io.Writer, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "<noscript><p>The charts of this page need JavaScript. The figures are:</p><pre>%s</pre></noscript>\n",
		html.EscapeString(text.String()))
	return err
}
