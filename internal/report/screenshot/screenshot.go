// Package screenshot renders a report to a PNG image with headless Chromium.
package screenshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/base/advice"
)

var (
	// ErrNoBrowser means that no Chromium was found.
	ErrNoBrowser = errors.New("no Chromium found")
	errNoImage   = errors.New("no image written by Chromium")
)

var browsers = []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

const (
	// Size of the window in CSS pixels.
	width, height = 1280, 5200
	drawTimeout   = 2 * time.Minute
	renderTime    = 8 * time.Second
)

// PNG renders an HTML file to a PNG file. Chromium uses a temporary profile, which PNG removes, and
// no network.
func PNG(ctx context.Context, page, png string) error {
	browser, err := findBrowser()
	if err != nil {
		return err
	}
	page, err = filepath.Abs(page)
	if err == nil {
		png, err = filepath.Abs(png)
	}
	if err != nil {
		return fmt.Errorf("render %s: %w", page, err)
	}
	profile, err := os.MkdirTemp("", "skerry-chromium-")
	if err != nil {
		return fmt.Errorf("create profile for Chromium: %w", err)
	}
	err = draw(ctx, browser, profile, page, png)
	return errors.Join(err, os.RemoveAll(profile))
}

func findBrowser() (string, error) {
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", advice.With(ErrNoBrowser, "install it (Debian: apt-get install chromium), or open the report in a browser and print it")
}

func draw(ctx context.Context, browser, profile, page, png string) error {
	ctx, cancel := context.WithTimeout(ctx, drawTimeout)
	defer cancel()
	shot := filepath.Join(profile, "report.png")
	address := url.URL{Scheme: "file", Path: page, Fragment: "picture"}
	var said bytes.Buffer
	c := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir="+profile, fmt.Sprintf("--window-size=%d,%d", width, height),
		fmt.Sprintf("--virtual-time-budget=%d", renderTime.Milliseconds()), "--screenshot="+shot, address.String())
	c.Stdout, c.Stderr = &said, &said
	c.WaitDelay = 5 * time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("render %s with %s: %w: %s", page, browser, cmp.Or(ctx.Err(), err), lastLine(said.String()))
	}
	b, err := os.ReadFile(shot)
	if err != nil {
		return fmt.Errorf("render %s with %s: %w: %s", page, browser, errNoImage, lastLine(said.String()))
	}
	if err := os.WriteFile(png, b, 0o644); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
