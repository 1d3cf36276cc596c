package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/install"
)

// A lock of a repository is created and read like by an installation.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		"org/demo/demo-all/5.0/demo-all-5.0.jar", "io/netty/epoll/4.1.Final/epoll-4.1.Final-linux-x86_64.jar",
		"a/a/1/a-1.jar", "a/a/1/a-1.pom",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	jars, err := scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := write(&b, []string{"org.demo:demo-all:5.0"}, jars); err != nil {
		t.Fatal(err)
	}
	locked, err := install.ParseLock(b.String())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range locked {
		got = append(got, j.String())
		if want := int64(len(j.Path())); j.Size != want {
			t.Errorf("%s: %d bytes, want %d", j, j.Size, want)
		}
	}
	if s := strings.Join(got, " "); s != "org.demo:demo-all:5.0 a:a:1 io.netty:epoll:4.1.Final:linux-x86_64" {
		t.Errorf("locked %s", s)
	}
}

func TestProject(t *testing.T) {
	text, err := project([]string{"g:a:1", "h:b:2"})
	if err != nil || strings.Count(text, "<dependency>") != 2 || !strings.Contains(text, "<groupId>h</groupId><artifactId>b</artifactId><version>2</version>") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := project([]string{"g:a"}); !errors.Is(err, errCoordinates) {
		t.Errorf("error %v", err)
	}
}
