package database

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/install"
)

// recipes are two series of a database that consists of a shell script.
func recipes() []install.Recipe {
	r := install.Recipe{Name: "demo", Programs: []string{"demo-server"}, VersionArgs: []string{"--version"},
		Version: func(out string) string { return strings.TrimPrefix(out, "demo ") }}
	newer, older := r, r
	newer.Series, older.Series = "5.0", "4.1"
	return []install.Recipe{newer, older}
}

func build(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "demo-server"), []byte("#!/bin/sh\necho demo "+version+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// demo is a database with two series.
type demo struct{ Database }

func (demo) Name() string { return "demo" }
func (demo) Find(version, from string) (Installation, error) {
	return Find(recipes(), version, from)
}

func TestLocate(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("SKERRY_CACHE", cache)
	for i, version := range []string{"5.0.9", "4.1.10"} {
		if _, err := (install.Store{Dir: cache}).Register(t.Context(), recipes()[i], build(t, version)); err != nil {
			t.Fatal(err)
		}
	}
	own := build(t, "6.1.2")
	for _, test := range []struct{ version, from, want string }{
		{"", "", "5.0.9"}, {"5.0", "", "5.0.9"}, {"5.0.9", "", "5.0.9"},
		{"4.1", "", "4.1.10"}, {"4.1.10", "", "4.1.10"},
		{"4.1.1", "", ""}, {"3", "", ""},
		{"", own, "6.1.2"}, {"6", own, "6.1.2"}, {"4.1", own, ""},
	} {
		in, err := Locate(demo{}, test.version, test.from)
		if (err == nil) != (test.want != "") || in.Version != test.want && err == nil {
			t.Errorf("version %q from %q: found %q, %v; want %q", test.version, test.from, in.Version, err, test.want)
		}
	}
	if _, err := Locate(demo{}, "4.1", own); !errors.Is(err, ErrVersion) {
		t.Errorf("a different version: error %v", err)
	}
}
