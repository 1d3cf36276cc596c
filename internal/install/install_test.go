package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
)

// demo is a database that consists of a shell script.
var demo = Recipe{
	Name: "demo", Programs: []string{"demo-server"}, VersionArgs: []string{"--version"},
	Version: func(out string) string {
		if v, ok := strings.CutPrefix(out, "demo "); ok {
			return v
		}
		return ""
	},
}

// build writes a demo-server that prints text and returns its folder.
func build(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho " + text + "\n"
	if err := os.WriteFile(filepath.Join(dir, "demo-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

const sum = "f791cfcbf3054832bd6e786546acb0d4e046888f8e63bcf567c1c65fbfaf69e2"

func TestParseURIs(t *testing.T) {
	got, err := parseURIs([]byte("'http://deb.invalid/pool/redis-tools_7.0.15-1%7edeb12u10_amd64.deb' redis-tools_5%3a7.0.15-1~deb12u10_amd64.deb 991988 SHA256:" + sum + "\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Package{{Name: "redis-tools", Version: "5:7.0.15-1~deb12u10", File: "redis-tools_5%3a7.0.15-1~deb12u10_amd64.deb", Size: 991988, SHA256: sum}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{
		"'http://x' a_1_all.deb 10",
		"'http://x' a_1_all.deb ten SHA256:" + sum,
		"'http://x' a_1_all.deb 10 MD5Sum:" + sum,
		"'http://x' a_1_all.deb 10 SHA256:" + sum[1:],
		"'http://x' a.deb 10 SHA256:" + sum,
		"'http://x' ../a_1_all.deb 10 SHA256:" + sum,
		"'http://x' a_%zz_all.deb 10 SHA256:" + sum,
	} {
		if got, err := parseURIs([]byte(bad)); err == nil {
			t.Errorf("%q was parsed as %+v", bad, got)
		}
	}
}

func FuzzParseURIs(f *testing.F) {
	f.Add([]byte("'http://x' a_1_all.deb 10 SHA256:" + sum))
	f.Fuzz(func(t *testing.T, out []byte) {
		packages, err := parseURIs(out)
		if err != nil {
			return
		}
		for _, p := range packages {
			if filepath.Base(p.File) != p.File {
				t.Fatalf("the file %q is outside the directory", p.File)
			}
		}
	})
}

func TestRegisterAndFind(t *testing.T) {
	s, ctx := Store{Dir: t.TempDir()}, t.Context()
	if _, err := s.Find(ctx, demo, ""); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("without an installation: error %v", err)
	}
	one, two := build(t, "demo 1"), build(t, "demo 2")
	if _, err := s.Register(ctx, demo, one); err != nil {
		t.Fatal(err)
	}
	// The next installation removes the leftovers of an interrupted one.
	stale := filepath.Join(s.Dir, "demo", ".new-123")
	if err := os.Mkdir(stale, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ register, from, version, dir string }{
		{"", "", "1", one},
		{"", two, "2", two},
		{filepath.Join(two, "demo-server"), "", "2", two},
	} {
		if test.register != "" {
			if _, err := s.Register(ctx, demo, test.register); err != nil {
				t.Fatal(err)
			}
		}
		in, err := s.Find(ctx, demo, test.from)
		want := Installation{Database: "demo", Version: test.version, Source: FromPath, Dir: test.dir,
			Programs: map[string]string{"demo-server": filepath.Join(test.dir, "demo-server")}}
		if diff := cmp.Diff(want, in); err != nil || diff != "" {
			t.Errorf("from %q: %v %s", test.from, err, diff)
		}
	}
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Error("leftovers of an interrupted install were not removed")
	}
	if _, err := s.Register(ctx, demo, build(t, "hello")); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a program without a version: error %v", err)
	}
	if in, err := s.Find(ctx, demo, ""); err != nil || in.Version != "2" {
		t.Errorf("a refused build is in use: %+v, %v", in, err)
	}
}

// The version of a user's program is read again if the program was replaced.
func TestProgramReplaced(t *testing.T) {
	s, ctx, dir := Store{Dir: t.TempDir()}, t.Context(), build(t, "demo 1")
	m, err := s.Register(ctx, demo, dir)
	if err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(dir, "demo-server")
	m.Installed = m.Installed.Add(-time.Minute) // manifests have a resolution of seconds
	tmp, err := os.MkdirTemp(filepath.Join(s.Dir, demo.Key()), ".new-")
	if err := errors.Join(err, s.publish(m, tmp, "own-earlier"), os.Rename(filepath.Join(build(t, "demo 2"), "demo-server"), server)); err != nil {
		t.Fatal(err)
	}
	if in, err := s.Find(ctx, demo, ""); err != nil || in.Version != "2" {
		t.Errorf("found %+v, %v; want version 2", in, err)
	}
	if err := os.Rename(filepath.Join(build(t, "hello"), "demo-server"), server); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(ctx, demo, ""); !errors.Is(err, ErrNotRunning) || advice.Of(err) == "" {
		t.Errorf("another program is in use: %v", err)
	}
}

func TestFindInPath(t *testing.T) {
	t.Setenv("PATH", build(t, "demo 3")+":"+os.Getenv("PATH"))
	in, err := (Store{Dir: t.TempDir()}).Find(t.Context(), demo, "")
	if err != nil || in.Version != "3" || in.Source != FromSystem || in.Dir != "" {
		t.Errorf("found %+v, %v", in, err)
	}
}

func TestInstallsWaitForEachOther(t *testing.T) {
	steps := make(chan string, 10)
	s := Store{Dir: t.TempDir(), Progress: func(step string) { steps <- step }}
	unlock, err := s.lock(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	from, done := build(t, "demo 1"), make(chan error)
	go func() {
		_, err := s.Register(t.Context(), demo, from)
		done <- err
	}()
	if step := <-steps; !strings.Contains(step, "another install is running") {
		t.Errorf("progress %q", step)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Register(cancelled, demo, from); !errors.Is(err, context.Canceled) {
		t.Errorf("an install canceled while it waits: error %v", err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("SKERRY_CACHE", "/a")
	if d, err := DefaultDir(); err != nil || d != "/a" {
		t.Errorf("%q, %v", d, err)
	}
	t.Setenv("SKERRY_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "/b")
	if d, err := DefaultDir(); err != nil || d != "/b/skerry" {
		t.Errorf("%q, %v", d, err)
	}
}
