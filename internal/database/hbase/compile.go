package hbase

import (
	"archive/zip"
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

//go:embed bridge/*.java bridge/log4j.properties bridge/hbase-site.xml
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

// bridgeFolder names the folder of compiled classes after what they were compiled from,
// and into.
func bridgeFolder() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, bridgeJar)
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

// bridgeJar is the jar of the bridge's classes in their folder: a JVM does not archive
// classes of folders.
const bridgeJar = "bridge.jar"

// bridgeClasses returns the jar of the bridge's classes, in a folder below root, which
// holds the installation's jars in lib. They are compiled unless they are there; where
// root cannot be written to, below fallback.
func bridgeClasses(ctx context.Context, javaPath, root, fallback string) (string, error) {
	name, err := bridgeFolder()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	folder := filepath.Join(root, name)
	if _, err := os.Stat(folder); err == nil {
		return filepath.Join(folder, bridgeJar), nil
	}
	err = compileBridge(ctx, javaPath, filepath.Join(root, "lib"), folder)
	if fallback != "" && errors.Is(err, fs.ErrPermission) {
		folder = filepath.Join(fallback, name)
		err = compileBridge(ctx, javaPath, filepath.Join(root, "lib"), folder)
	}
	return filepath.Join(folder, bridgeJar), err
}

// compileBridge compiles into a folder that appears when it is complete: several may
// do so at the same time.
func compileBridge(ctx context.Context, javaPath, lib, folder string) error {
	compilers, _ := filepath.Glob(filepath.Join(lib, compilerPattern)) // the pattern is well-formed
	if len(compilers) == 0 {
		return advice.With(fmt.Errorf("%w: no %s in %s", ErrCompiler, compilerPattern, lib), "install HBase again: skerry install %s", Name)
	}
	all, _ := filepath.Glob(filepath.Join(lib, "*.jar"))
	tmp, err := os.MkdirTemp(filepath.Dir(folder), ".bridge-")
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
	args := append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-jar", compilers[0], "-source", javaRelease, "-target", javaRelease,
		"-nowarn", "-proc:none", "-cp", strings.Join(all, ":"), "-d", tmp}, sources...)
	if out, err := exec.CommandContext(ctx, javaPath, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w: %s", ErrCompiler, err, out)
	}
	if err := pack(filepath.Join(tmp, bridgeJar), tmp); err != nil {
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil { // MkdirTemp's 0700 would shut out others
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	if err := os.Rename(tmp, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	return nil
}

// pack makes a jar of the compiled classes below a folder and of the settings beside them.
func pack(jar, folder string) error {
	f, err := os.Create(jar)
	if err != nil {
		return err
	}
	z := zip.NewWriter(f)
	add := func(name, path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w, err := z.Create(name)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	classes, _ := filepath.Glob(filepath.Join(folder, "bridge", "*.class")) // the pattern is well-formed
	for _, path := range classes {
		err = errors.Join(err, add("bridge/"+filepath.Base(path), path))
	}
	for _, name := range []string{"log4j.properties", "hbase-site.xml"} {
		err = errors.Join(err, add(name, filepath.Join(folder, "bridge", name)))
	}
	return errors.Join(err, z.Close(), f.Close())
}
