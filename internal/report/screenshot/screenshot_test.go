package screenshot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/base/advice"
)

// browser puts a shell script named chromium on a private PATH.
func browser(t *testing.T, script string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "chromium"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	t.Setenv("TMPDIR", folder)
	return folder
}

func TestPNG(t *testing.T) {
	folder := browser(t, `for a; do case $a in --screenshot=*) printf '%s' "$*" > "${a#--screenshot=}";; esac; done`)
	out := filepath.Join(folder, "out.png")
	if err := PNG(t.Context(), "/run/a b.html", out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(b), " file:///run/a%20b.html#picture") || !strings.Contains(string(b), "--headless --no-sandbox") {
		t.Errorf("arguments of Chromium: %s", b)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "skerry-chromium-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPNGWithoutBrowser(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := PNG(t.Context(), "x.html", "x.png")
	if !errors.Is(err, ErrNoBrowser) || !strings.Contains(advice.Of(err), "chromium") {
		t.Errorf("%v, advice %q", err, advice.Of(err))
	}
}

func TestPNGBrowserWritesNoImage(t *testing.T) {
	folder := browser(t, "echo starting; echo no display >&2")
	if err := PNG(t.Context(), "x.html", filepath.Join(folder, "x.png")); !errors.Is(err, errNoImage) ||
		!strings.Contains(err.Error(), "no display") {
		t.Error(err)
	}
}

func TestPNGBrowserFails(t *testing.T) {
	folder := browser(t, "echo out of memory >&2; exit 7")
	if err := PNG(t.Context(), "x.html", filepath.Join(folder, "x.png")); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Error(err)
	}
}
