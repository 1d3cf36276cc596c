package database

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

func TestExplainDisks(t *testing.T) {
	testkit.Need(t, testkit.Root)
	nodes, failure := testhost.Loopback(t, 3), errors.New("no answer")
	for _, h := range nodes[:2] {
		if err := unix.Mount("tmpfs", h.Dir(), "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(h.Dir(), unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	if err := ExplainDiskFull(t.Context(), failure, nodes[:2]); err != failure {
		t.Errorf("with free space on every disk: %v", err)
	}
	if err := os.WriteFile(filepath.Join(nodes[1].Dir(), "data"), make([]byte, 1000<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ExplainDiskFull(t.Context(), nil, nodes); err != nil {
		t.Errorf("no failure: %v", err)
	}
	err := ExplainDiskFull(t.Context(), failure, nodes)
	if !errors.Is(err, ErrDiskFull) || !errors.Is(err, failure) || advice.Of(err) == "" {
		t.Fatalf("error %v, advice %q", err, advice.Of(err))
	}
	if text := err.Error(); !strings.Contains(text, "for n2 (") || strings.Contains(text, "n1") {
		t.Errorf("error %q should name n2 alone", text)
	}
	if again := ExplainDiskFull(t.Context(), fmt.Errorf("trial 1: %w", err), nodes); strings.Count(again.Error(), ErrDiskFull.Error()) != 1 {
		t.Errorf("explained twice: %v", again)
	}
	var none []host.Host
	if err := ExplainDiskFull(t.Context(), failure, none); err != failure {
		t.Errorf("without nodes: %v", err)
	}
}
