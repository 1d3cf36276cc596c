package hbase

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

//go:embed bridge/*.java bridge/log4j.properties bridge/hbase-site.xml
var bridgeSource embed.FS

const (
	// compilerPattern is the jar of the compiler, so that a Java runtime suffices.
	compilerPattern = "ecj-*.jar"
	// compileTimeout bounds a compilation, which takes 2 s on an idle machine.
	compileTimeout = 2 * time.Minute
	// javaRelease is the oldest release of Java that the bridge runs on.
	javaRelease = "11"
)

// ErrCompiler means that the bridge cannot be compiled.
var ErrCompiler = errors.New("the bridge to HBase's client cannot be compiled")

// bridgeFolder names the folder of compiled classes by a digest of their sources and flags.
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

// bridgeJar is a jar because JVMs do not archive classes of folders.
const bridgeJar = "bridge.jar"

// bridgeClasses returns the jar of the bridge's classes below root, or below fallback if root is read-only. It
// compiles them if they are missing.
func (w buildHost) bridgeClasses(ctx context.Context, javaPath, root, fallback string) (string, error) {
	name, err := bridgeFolder()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	folder := filepath.Join(root, name)
	if files.Exists(ctx, w, folder) {
		return filepath.Join(folder, bridgeJar), nil
	}
	err = w.compile(ctx, javaPath, filepath.Join(root, "lib"), folder)
	if fallback != "" && errors.Is(err, fs.ErrPermission) {
		folder = filepath.Join(fallback, name)
		err = w.compile(ctx, javaPath, filepath.Join(root, "lib"), folder)
	}
	return filepath.Join(folder, bridgeJar), err
}

// compile renames a temporary folder when complete, because several processes may compile at the same time.
func (w buildHost) compile(ctx context.Context, javaPath, lib, folder string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	compilers := files.Glob(ctx, w, filepath.Join(lib, compilerPattern))
	if len(compilers) == 0 {
		return advice.With(fmt.Errorf("%w: no %s in %s", ErrCompiler, compilerPattern, lib), "install HBase again: skerry install %s", Name)
	}
	tmp := filepath.Join(filepath.Dir(folder), ".bridge-"+rand.Text())
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrCompiler, err)
		}
		err = errors.Join(err, w.Remove(context.WithoutCancel(ctx), tmp)) // where it has its name, nothing is there
	}()
	if err := w.writeSources(ctx, tmp); err != nil {
		return err
	}
	args := append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-jar", compilers[0], "-source", javaRelease, "-target", javaRelease,
		"-nowarn", "-proc:none", "-cp", strings.Join(files.Glob(ctx, w, filepath.Join(lib, "*.jar")), ":"), "-d", tmp},
		files.Glob(ctx, w, filepath.Join(tmp, "bridge", "*.java"))...)
	if err := w.run(ctx, javaPath, args); err != nil {
		return err
	}
	if err := w.packJar(ctx, tmp); err != nil {
		return err
	}
	if err := w.Rename(ctx, tmp, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (w buildHost) writeSources(ctx context.Context, folder string) error {
	return fs.WalkDir(bridgeSource, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return w.MakeDir(ctx, filepath.Join(folder, path))
		}
		text, err := bridgeSource.ReadFile(path)
		if err != nil {
			return err
		}
		return files.WriteText(ctx, w, filepath.Join(folder, path), string(text))
	})
}

type buildHost struct {
	files.System
	run func(ctx context.Context, path string, args []string) error
}

var localBuildHost = buildHost{files.Local{}, func(ctx context.Context, path string, args []string) error {
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}}

func buildHostOn(h host.Host) buildHost {
	return buildHost{h.Files(), func(ctx context.Context, path string, args []string) error {
		var out bytes.Buffer
		p, err := h.Start(ctx, host.Command{Name: "ecj", Path: path, Args: args, Stdout: &out, Stderr: &out})
		if err != nil {
			return err
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), p.Kill())
		}
		if err := p.Err(); err != nil {
			return fmt.Errorf("%w: %s", err, &out)
		}
		return nil
	}}
}

func (w buildHost) packJar(ctx context.Context, folder string) error {
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	add := func(name, path string) error {
		text, err := files.Read(ctx, w, path)
		if err != nil {
			return err
		}
		to, err := z.Create(name)
		if err != nil {
			return err
		}
		_, err = io.WriteString(to, text)
		return err
	}
	var err error
	for _, path := range files.Glob(ctx, w, filepath.Join(folder, "bridge", "*.class")) {
		err = errors.Join(err, add("bridge/"+filepath.Base(path), path))
	}
	for _, name := range []string{"log4j.properties", "hbase-site.xml"} {
		err = errors.Join(err, add(name, filepath.Join(folder, "bridge", name)))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		return err
	}
	return w.Write(ctx, filepath.Join(folder, bridgeJar), 0o644, &jar)
}
