package mount_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/instance"
	"skerry/systems/metadata/mount"
	"skerry/systems/metadata/protocol"
	"skerry/test/testkit"
)

// mounted mounts a server's tree on a directory.
func mounted(t *testing.T) (string, *client.Client) {
	t.Helper()
	testkit.Need(t, testkit.FUSE)
	ctx, cancel := context.WithCancel(context.Background())
	serving, served := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		served <- instance.Run(ctx, instance.Options{Listen: "127.0.0.1:0", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
			Ready: func(a net.Addr, _ protocol.LogRecovery) error { serving <- a; return nil }})
	}()
	var c *client.Client
	select {
	case a := <-serving:
		c = client.New(a.String())
	case err := <-served:
		cancel()
		t.Fatal(err)
	}
	dir := t.TempDir()
	mctx, unmount := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- mount.Run(mctx, c, dir, mount.Options{Cache: time.Second, Ready: func() { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unmount()
		err := <-ended
		c.Close()
		cancel()
		if err := errors.Join(err, <-served); err != nil {
			t.Error(err)
		}
	})
	return dir, c
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFiles(t *testing.T) {
	dir, c := mounted(t)
	p := func(name string) string { return filepath.Join(dir, name) }
	noError(t, os.MkdirAll(p("a/b"), 0o700))
	noError(t, os.WriteFile(p("a/f"), []byte("text"), 0o640))
	noError(t, os.Rename(p("a/f"), p("a/b/my file")))
	r := c.DoOne(context.Background(), metadata.Command{Op: metadata.Read, Path: "/a/b/my file"})
	if string(r.Data) != "text" || r.Err != nil {
		t.Errorf("read %q, %v", r.Data, r.Err)
	}
	info, err := os.Stat(p("a/b/my file"))
	noError(t, err)
	if info.Size() != 4 || info.Mode() != 0o640 {
		t.Errorf("size %d, mode %s", info.Size(), info.Mode())
	}
	for what, err := range map[error]error{
		syscall.ENOTEMPTY: os.Remove(p("a/b")), syscall.EEXIST: os.Mkdir(p("a"), 0o700), syscall.ENOENT: os.Remove(p("none")),
		syscall.EFBIG: os.WriteFile(p("large"), make([]byte, metadata.MaxFile+1), 0o600), syscall.EINVAL: os.Rename(p("a"), p("a/b/c")),
		syscall.ENAMETOOLONG: os.Mkdir(p(strings.Repeat("x", 256)), 0o700),
	} {
		if !errors.Is(err, what) {
			t.Errorf("%v, want %v", err, what)
		}
	}
	f, err := os.OpenFile(p("a/b/my file"), os.O_RDWR|os.O_APPEND, 0)
	noError(t, err)
	_, err = f.WriteString(" and more")
	noError(t, err)
	noError(t, f.Sync())
	noError(t, os.Truncate(p("a/b/my file"), 8))
	noError(t, os.Remove(p("a/b/my file")))
	_, err = f.WriteString("!") // the file is removed and must not return
	noError(t, err)
	b := make([]byte, 20)
	n, err := f.ReadAt(b, 0)
	if string(b[:n]) != "text and!" {
		t.Errorf("read %q, %v from a removed file", b[:n], err)
	}
	noError(t, f.Close())
	if entries, err := os.ReadDir(p("a/b")); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
	when := time.Unix(1_600_000_000, 500_000_000)
	noError(t, os.Chtimes(p("a"), when, when))
	noError(t, os.Chmod(p("a"), 0o711))
	if info, err := os.Stat(p("a")); err != nil || !info.ModTime().Equal(when) || info.Mode().Perm() != 0o711 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestGit creates a repository, commits twice and checks it with git.
func TestGit(t *testing.T) {
	testkit.Need(t, testkit.Git)
	dir, _ := mounted(t)
	// Commands start outside the mount. A forking process is blocked until its child has entered the directory,
	// and this process must answer that request.
	repo := filepath.Join(dir, "repo")
	git := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c",
			"gc.auto=0"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	git("init", repo)
	noError(t, os.MkdirAll(filepath.Join(repo, "src"), 0o755))
	noError(t, os.WriteFile(filepath.Join(repo, "src", "main.go"), bytes.Repeat([]byte("line\n"), 5000), 0o644))
	git("-C", repo, "add", ".")
	git("-C", repo, "commit", "-q", "-m", "one")
	noError(t, os.WriteFile(filepath.Join(repo, "src", "main.go"), []byte("changed\n"), 0o644))
	git("-C", repo, "commit", "-q", "-a", "-m", "two")
	git("-C", repo, "fsck", "--strict")
	if log := git("-C", repo, "log", "--format=%s"); log != "two\none\n" {
		t.Errorf("log %q", log)
	}
	if status := git("-C", repo, "status", "--porcelain"); status != "" {
		t.Errorf("status %q", status)
	}
	out, err := exec.Command("find", repo, "-name", "main.go").Output()
	if err != nil || strings.TrimSpace(string(out)) != filepath.Join(repo, "src", "main.go") {
		t.Errorf("found %q, %v", out, err)
	}
}
