// Package web is the front end as it is built into the binary: the page of reports, and the
// dashboard's files. npm builds both from TypeScript into dist and compresses them with gzip. This
// package embeds dist.
package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"skerry/internal/base/advice"
)

//go:embed all:dist
var dist embed.FS

// ErrNotBuilt says that the binary was compiled without the front end.
var ErrNotBuilt = errors.New("this skerry was compiled without its front end")

// ReportPage returns the page of reports, without a run's data.
func ReportPage() ([]byte, error) {
	compressed, err := dist.ReadFile("dist/report/report.html.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notBuilt()
	}
	var page []byte
	var r *gzip.Reader
	if err == nil {
		r, err = gzip.NewReader(bytes.NewReader(compressed))
	}
	if err == nil {
		page, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report's page: %w", err)
	}
	return page, nil
}

// Dashboard returns the folder of the dashboard's compressed files. Its page is dashboard.html.gz.
func Dashboard() (fs.FS, error) {
	files, err := fs.Sub(dist, "dist/dashboard")
	if err != nil {
		return nil, fmt.Errorf("opening the dashboard's files: %w", err)
	}
	if _, err := fs.Stat(files, "dashboard.html.gz"); err != nil {
		return nil, notBuilt()
	}
	return files, nil
}

func notBuilt() error {
	return advice.With(ErrNotBuilt,
		"install Node.js 18 or newer with npm (on Debian: scripts/setup.sh build) and run make; packages have the front end")
}
