package shell_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/system/metadata/journal"
	"skerry/internal/system/metadata/server"
	"skerry/internal/system/metadata/shell"
	"skerry/internal/system/metadata/treeclient"
	"skerry/internal/system/metadata/treestore"
)

func newShell(t *testing.T) (s *shell.Shell, out, errs *bytes.Buffer) {
	t.Helper()
	state := treestore.NewState()
	j, _, err := journal.Open(t.TempDir(), state, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(server.New(treestore.New(state, j), server.Options{}))
	c := treeclient.New(h.URL)
	t.Cleanup(func() {
		c.Close()
		h.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &shell.Shell{Client: c, Out: out, Err: errs}, out, errs
}

func TestRun(t *testing.T) {
	s, out, errs := newShell(t)
	err := s.Run(context.Background(), strings.NewReader("mkdir -p a/b\ncd a\nls\nmkdir '../my dir'\nls ..\ncd b/../..\npwd\ncd none\nnonsense\nexit\nls\n"))
	if !errors.Is(err, shell.ErrFailed) {
		t.Errorf("error %v", err)
	}
	if out.String() != "b\na\nmy dir\n/\n" {
		t.Errorf("printed %q", out)
	}
	if !strings.Contains(errs.String(), "/none: no such file or directory\ninvalid command nonsense:") {
		t.Errorf("errors %q", errs)
	}
}

func TestComplete(t *testing.T) {
	s, _, _ := newShell(t)
	ctx := context.Background()
	if err := s.Run(ctx, strings.NewReader("mkdir -p /alpha/one\nmkdir /alpha/two\nmkdir '/alpha/two words'\ncreate /alps\nmkdir /beta\ncd /alpha\n")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"mk":            {"mkdir "},
		"ls /al":        {"/alpha/", "/alps"},
		"mv /alps /be":  {"/beta/"},
		"ls t":          {"two/", `"two words"/`},
		"ls ../alp":     {"../alpha/", "../alps"},
		"ls /none/":     nil,
		"mkdir -":       nil,
		"stat /alpha/o": {"/alpha/one/"},
	} {
		head, words := s.Complete(ctx, line)
		if diff := cmp.Diff(want, words); diff != "" || !strings.HasPrefix(line, head) {
			t.Errorf("%s: %s", line, diff)
		}
	}
}
