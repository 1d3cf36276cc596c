package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseLock(t *testing.T) {
	got, err := ParseLock("# made by jarlock\n\n" + sum + " 12 org.demo:demo-all:5.0.9  # its own\n" + sum + "   3 io.netty:epoll:4.1.Final:linux-x86_64\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Jar{
		{Group: "org.demo", Artifact: "demo-all", Version: "5.0.9", Size: 12, SHA256: sum},
		{Group: "io.netty", Artifact: "epoll", Version: "4.1.Final", Classifier: "linux-x86_64", Size: 3, SHA256: sum},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p := got[1].Path(); p != "io/netty/epoll/4.1.Final/epoll-4.1.Final-linux-x86_64.jar" {
		t.Errorf("path %s", p)
	}
	for _, bad := range []string{
		"", "# nothing", sum + " 12", sum + " x a:b:1", sum + " 0 a:b:1", sum[1:] + " 1 a:b:1", strings.ToUpper(sum) + " 1 a:b:1",
		sum + " 1 a:b", sum + " 1 a:b:c:d:e", sum + " 1 a:../b:1", sum + " 1 a/b:b:1", sum + " 1 a:b:..", sum + " 1 a::1",
	} {
		if got, err := ParseLock(bad); !errors.Is(err, ErrLock) {
			t.Errorf("%q was parsed as %+v, %v", bad, got, err)
		}
	}
}

func FuzzParseLock(f *testing.F) {
	f.Add(sum + " 12 org.demo:demo-all:5.0.9:linux # own")
	f.Fuzz(func(t *testing.T, text string) {
		jars, err := ParseLock(text)
		if err != nil {
			return
		}
		for _, j := range jars {
			if filepath.Base(j.File()) != j.File() || !filepath.IsLocal(j.Path()) {
				t.Fatalf("%q is outside the repository", j.Path())
			}
		}
	})
}

func TestCentralMirror(t *testing.T) {
	mirror := func(of string) string {
		return `<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors><mirror><id>x</id><mirrorOf>` + of +
			`</mirrorOf><url> https://mirror.invalid/m2/ </url></mirror></mirrors></settings>`
	}
	for of, want := range map[string]string{
		"*": "https://mirror.invalid/m2", "central": "https://mirror.invalid/m2", "external:*": "https://mirror.invalid/m2",
		"a, central": "https://mirror.invalid/m2", "*,!central": mavenCentral, "other": mavenCentral,
	} {
		if got, err := centralMirror([]byte(mirror(of))); err != nil || got != want {
			t.Errorf("mirrorOf %q: %q, %v; want %q", of, got, err, want)
		}
	}
	if got, err := centralMirror([]byte("<settings/>")); err != nil || got != mavenCentral {
		t.Errorf("no mirror: %q, %v", got, err)
	}
	if _, err := centralMirror([]byte("<settings>")); err == nil {
		t.Error("truncated settings were accepted")
	}
}

// repository serves jars like Maven Central; it truncates the first breaks responses.
type repository struct {
	mu       sync.Mutex
	files    map[string][]byte // by path
	breaks   int
	requests []string // requested paths with their ranges
}

func (r *repository) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, q.URL.Path+" "+q.Header.Get("Range"))
	cut := r.breaks > 0
	r.breaks--
	content, ok := r.files[strings.TrimPrefix(q.URL.Path, "/")]
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, q)
		return
	}
	if cut {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content[:len(content)/2]) // fails only if the client has gone
		return
	}
	http.ServeContent(w, q, "x.jar", time.Time{}, bytes.NewReader(content))
}

// takeRequests returns the requests since its last call.
func (r *repository) takeRequests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := r.requests
	r.requests = nil
	return requests
}

// jarRecipe is a database of two jars in the repository.
func jarRecipe(t *testing.T, r *repository) Recipe {
	t.Helper()
	var lock strings.Builder
	r.files = make(map[string][]byte)
	for i, c := range []string{"org.demo:demo-all:5.0.9", "org.other:other:1.2"} {
		content := bytes.Repeat([]byte{byte('a' + i)}, 1000)
		digest := sha256.Sum256(content)
		fmt.Fprintf(&lock, "%s %d %s\n", hex.EncodeToString(digest[:]), len(content), c)
		jars, err := ParseLock(lock.String())
		if err != nil {
			t.Fatal(err)
		}
		r.files[jars[i].Path()] = content
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Setenv(mavenEnv, server.URL+"/")
	return Recipe{Name: "demo", Series: "5.0", Jars: lock.String()}
}

func TestInstallJars(t *testing.T) {
	source := &repository{breaks: 1}
	r, s := jarRecipe(t, source), Store{Dir: t.TempDir()}
	m, err := s.Install(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != "5.0.9" || m.Source != FromMaven || len(m.Packages) != 2 {
		t.Errorf("installed %+v", m)
	}
	resumed, requests := false, source.takeRequests()
	for _, a := range requests {
		resumed = resumed || strings.HasSuffix(a, " bytes=500-")
	}
	if !resumed {
		t.Errorf("an interrupted download was not resumed: %q", requests)
	}
	in, err := s.Find(t.Context(), r, "")
	if err != nil || in.Version != "5.0.9" {
		t.Fatalf("found %+v, %v", in, err)
	}
	for path, content := range source.files {
		got, err := os.ReadFile(filepath.Join(in.Dir, "lib", filepath.Base(path)))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, "downloads", "*")); len(left) > 0 {
		t.Errorf("leftovers in downloads: %v", left)
	}

	// The installation stays; another lock is another installation; another series is installed next to it.
	if _, err := s.Install(t.Context(), r); err != nil {
		t.Error(err)
	}
	if requests := source.takeRequests(); len(requests) > 0 {
		t.Errorf("reinstalled: %q", requests)
	}
	one := strings.SplitAfter(r.Jars, "\n")
	less := r
	less.Jars = one[0]
	if _, err := s.Install(t.Context(), less); err != nil {
		t.Error(err)
	}
	if requests := source.takeRequests(); len(requests) > 0 {
		t.Errorf("an installation with all requested parts was repeated: %q", requests)
	}
	other := less
	other.Series = "4.1"
	if _, err := s.Install(t.Context(), other); err != nil {
		t.Error(err)
	}
	if rows := s.List(t.Context(), []Recipe{r, other}); rows[0].Name != "demo@5.0" || rows[1].Name != "demo@4.1" || rows[0].Path == rows[1].Path {
		t.Errorf("listed %+v", rows)
	}
}

func TestUnavailableJarsAreReported(t *testing.T) {
	source := &repository{}
	r, s := jarRecipe(t, source), Store{Dir: t.TempDir()}
	// A request whose client has given up may still be served.
	source.mu.Lock()
	for path := range source.files {
		if strings.HasPrefix(path, "org/other") {
			source.files[path] = bytes.Repeat([]byte("x"), 1000)
		}
	}
	source.mu.Unlock()
	if _, err := s.Install(t.Context(), r); !errors.Is(err, ErrChecksum) {
		t.Errorf("a jar that differs from the lock: error %v", err)
	}
	source.mu.Lock()
	clear(source.files)
	source.mu.Unlock()
	if _, err := s.Install(t.Context(), r); !errors.Is(err, errPermanent) {
		t.Errorf("a missing jar: error %v", err)
	}
	source = &repository{breaks: 1000}
	r = jarRecipe(t, source)
	if _, err := s.Install(t.Context(), r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a download that always fails: error %v", err)
	}
	if _, err := s.Find(t.Context(), r, ""); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("without an installation: error %v", err)
	}
}

func TestJavaOfAnotherRelease(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025-04-15' >&2\n"
	if err := os.WriteFile(filepath.Join(home, "bin/java"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JAVA_HOME", home)
	t.Setenv("PATH", t.TempDir()+":/nonexistent")
	for _, test := range []struct {
		java Java
		ok   bool
	}{{Java{11, 17}, true}, {Java{17, 21}, true}, {Java{8, 11}, false}, {Java{21, 25}, false}} {
		programs := make(map[string]string)
		err := Recipe{Name: "demo", Java: test.java}.java(t.Context(), "", programs)
		if (err == nil) != test.ok || test.ok != (programs["java"] != "") || !test.ok && !errors.Is(err, ErrNoJava) {
			t.Errorf("Java %d to %d: %v, %v", test.java.Min, test.java.Max, programs, err)
		}
	}
}
