package hbase

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/advice"
)

//go:embed bridge/*.java bridge/log4j.properties
var bridgeSource embed.FS

const (
	// compilerPattern is the compiler: a jar among the others, so that a Java runtime
	// without one will do.
	compilerPattern = "ecj-*.jar"
	// compileTimeout bounds a compilation, which takes 2 s on an idle machine.
	compileTimeout = 2 * time.Minute
	// javaRelease is the oldest release of Java that the bridge runs on.
	javaRelease = "11"
)

// ErrCompiler says that the bridge cannot be compiled.
var ErrCompiler = errors.New("the bridge to HBase's client cannot be compiled")

// bridgeFolder names the folder of compiled classes after what they were compiled from.
func bridgeFolder() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(bridgeSource, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := bridgeSource.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n", path, len(text))
		sum.Write(text)
		return err
	})
	return "bridge-" + hex.EncodeToString(sum.Sum(nil))[:12], err
}

// bridgeClasses returns the folder of the bridge's classes below root, which holds the
// installation's jars in lib. They are compiled unless they are there; where root
// cannot be written to, below fallback.
func bridgeClasses(ctx context.Context, javaPath, root, fallback string) (string, error) {
	name, err := bridgeFolder()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	classes := filepath.Join(root, name)
	if _, err := os.Stat(classes); err == nil {
		return classes, nil
	}
	err = compileBridge(ctx, javaPath, filepath.Join(root, "lib"), classes)
	if err == nil || fallback == "" || !errors.Is(err, fs.ErrPermission) {
		return classes, err
	}
	classes = filepath.Join(fallback, name)
	return classes, compileBridge(ctx, javaPath, filepath.Join(root, "lib"), classes)
}

// compileBridge compiles into a folder that appears when it is complete: several may
// do so at the same time.
func compileBridge(ctx context.Context, javaPath, lib, classes string) error {
	compilers, _ := filepath.Glob(filepath.Join(lib, compilerPattern)) // the pattern is well-formed
	if len(compilers) == 0 {
		return advice.With(fmt.Errorf("%w: no %s in %s", ErrCompiler, compilerPattern, lib), "install HBase again: skerry install %s", Name)
	}
	all, _ := filepath.Glob(filepath.Join(lib, "*.jar"))
	tmp, err := os.MkdirTemp(filepath.Dir(classes), ".bridge-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	defer os.RemoveAll(tmp)
	if err := os.CopyFS(tmp, bridgeSource); err != nil {
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	sources, _ := filepath.Glob(filepath.Join(tmp, "bridge", "*.java"))
	args := append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", compilers[0], "-source", javaRelease, "-target", javaRelease,
		"-nowarn", "-proc:none", "-cp", strings.Join(all, ":"), "-d", tmp}, sources...)
	if out, err := exec.CommandContext(ctx, javaPath, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w: %s", ErrCompiler, err, out)
	}
	if err := os.Rename(filepath.Join(tmp, "bridge", "log4j.properties"), filepath.Join(tmp, "log4j.properties")); err != nil {
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil { // MkdirTemp's 0700 would shut out others
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	if err := os.Rename(tmp, classes); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	return nil
}
