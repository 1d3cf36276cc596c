// Package web is the front end as it is built into the binary: the page of reports, and the
// dashboard's files. npm builds both from TypeScript into dist, which this package embeds.
package web

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"skerry/internal/base/advice"
)

//go:embed all:dist
var dist embed.FS

// ErrNotBuilt says that the binary was compiled without the front end.
var ErrNotBuilt = errors.New("this skerry was compiled without its front end")

// ReportPage is the page of reports, without a run's data.
func ReportPage() ([]byte, error) {
	b, err := dist.ReadFile("dist/report/report.html")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notBuilt()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report's page: %w", err)
	}
	return b, nil
}

// Dashboard is the folder of the dashboard's files; dashboard.html is its page.
func Dashboard() (fs.FS, error) {
	files, err := fs.Sub(dist, "dist/dashboard")
	if err != nil {
		return nil, fmt.Errorf("opening the dashboard's files: %w", err)
	}
	if _, err := fs.Stat(files, "dashboard.html"); err != nil {
		return nil, notBuilt()
	}
	return files, nil
}

func notBuilt() error {
	return advice.With(ErrNotBuilt, "install Node.js 18 or newer with npm (on Debian: scripts/setup.sh build) and run make; packages have the front end")
}
