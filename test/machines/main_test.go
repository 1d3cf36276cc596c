// Package machines measures labs whose nodes are on several machines (docs/scale.md).
package machines

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"skerry/test/testkit"
)

// exe is the skerry program of the agents.
var exe string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "skerry-machines-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	exe = filepath.Join(dir, "skerry")
	if err := testkit.BuildPrograms(dir, "skerry"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
