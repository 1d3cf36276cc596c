package bucket

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// standIn replaces S3: it stores objects and only checks that there is a signature. Kubernetes' test in test/engines
// uses a real server, which verifies signatures.
type standIn struct {
	mu      sync.Mutex
	objects map[string][]byte
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := r.URL.Query(); len(q.Get("X-Amz-Signature")) != 64 || q.Get("X-Amz-Expires") != "604800" ||
		!strings.Contains(q.Get("X-Amz-Credential"), "/north-1/s3/") {
		http.Error(w, "AccessDenied", http.StatusForbidden)
		return
	}
	text, there := s.objects[r.URL.Path]
	switch r.Method {
	case http.MethodPut:
		s.objects[r.URL.Path], _ = io.ReadAll(r.Body) // errors show in the test
	case http.MethodDelete:
		delete(s.objects, r.URL.Path)
	case http.MethodGet:
		if !there {
			http.Error(w, "NoSuchKey", http.StatusNotFound)
			return
		}
		_, _ = w.Write(text) // the test detects missing data
	}
}

func TestBucket(t *testing.T) {
	s := &standIn{objects: map[string][]byte{}}
	server := httptest.NewServer(s)
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	t.Setenv("AWS_REGION", "north-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	if _, err := Open("s3://lab/runs"); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("without a key: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "me")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "my secret")
	if _, err := Open("s3://"); err == nil {
		t.Error("an invalid bucket was accepted")
	}
	b, err := Open("s3://lab/runs/")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err != nil || len(s.objects) != 0 {
		t.Errorf("%v, and %d objects are left", err, len(s.objects))
	}
	link, err := b.Link(t.Context(), "job-1")
	if err != nil || strings.Contains(link, "secret") {
		t.Fatalf("the link is %s (%v)", link, err)
	}
	if err := Request(
		t.Context(), server.Client(), http.MethodPut, link, strings.NewReader("results"),
		func(io.Reader) error { return nil },
	); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := b.Get(t.Context(), "job-1", &got); err != nil || got.String() != "results" || string(s.objects["/lab/runs/job-1"]) != "results" {
		t.Errorf("got %q (%v)", got.String(), err)
	}
	for range 2 {
		if err := b.Remove(t.Context(), "job-1"); err != nil {
			t.Error(err)
		}
	}
	if err := b.Get(t.Context(), "job-1", &got); !errors.Is(err, ErrNotFound) {
		t.Errorf("a removed object: %v", err)
	}
	t.Setenv("AWS_REGION", "south-1")
	if b, err = Open("s3://lab"); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "X-Amz") {
		t.Errorf("a key that is not allowed: %v", err)
	}
}
