package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"skerry/internal/base/advice"
)

// ErrNoGo is returned if a program must be built and there is no Go toolchain.
var ErrNoGo = errors.New("the Go toolchain is missing")

// GoProgram is a program that is built from Go modules.
type GoProgram struct {
	Name string
	// Package is the import path of the main package; "" for Main.
	Package string
	Main    []byte // main.go
	// Module and Sums are go.mod and go.sum. They pin all modules of the program.
	Module, Sums []byte
}

// Build compiles the program into bin below root. It implements Recipe.Prepare.
func (p GoProgram) Build(ctx context.Context, root string, progress func(string)) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return advice.With(fmt.Errorf("building %s: %w: %w", p.Name, ErrNoGo, err),
			"install Go 1.26 or newer and try again, or give a build of %s with --from", p.Name)
	}
	dir, err := os.MkdirTemp("", "skerry-build-")
	if err != nil {
		return fmt.Errorf("building %s: %w", p.Name, err)
	}
	defer os.RemoveAll(dir)
	target := p.Package
	if target == "" {
		target = "main.go"
	}
	for name, content := range map[string][]byte{"main.go": p.Main, "go.mod": p.Module, "go.sum": p.Sums} {
		if content == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("building %s: %w", p.Name, err)
		}
	}
	progress("downloading modules and building, about a minute")
	// Go builds main.go, which is named on the command line, despite its build constraint.
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(root, "bin", p.Name), target)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return advice.With(fmt.Errorf("building %s: %w: %s", p.Name, err, strings.TrimSpace(string(out))),
			"check that the module proxy can be reached: go env GOPROXY")
	}
	return nil
}
