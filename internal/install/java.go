package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"skerry/internal/base/advice"
)

// Java is a range of Java releases, such as 17 to 21, inclusive.
type Java struct{ Min, Max int }

// javaProgram is the runtime's key in Installation.Programs.
const javaProgram = "java"

// javaVersion finds the release in `openjdk version "17.0.15" 2025-04-15`; Java 8 is "1.8.0_402".
var javaVersion = regexp.MustCompile(`version "(?:1\.)?(\d+)`)

// java adds the runtime to the programs: the one below root, else JAVA_HOME's, else PATH's.
func (r Recipe) java(ctx context.Context, root string, programs map[string]string) error {
	if r.Java == (Java{}) {
		return nil
	}
	var candidates []string
	if root != "" {
		candidates, _ = filepath.Glob(filepath.Join(root, "usr/lib/jvm/*/bin/java")) // the pattern is well-formed
	}
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, "bin/java"))
	}
	if path, err := exec.LookPath(javaProgram); err == nil {
		candidates = append(candidates, path)
	}
	err := fmt.Errorf("%s runs on Java %d to %d: %w", r.Name, r.Java.Min, r.Java.Max, ErrNoJava)
	for _, path := range candidates {
		release, problem := javaRelease(ctx, path)
		switch {
		case problem != nil:
			err = errors.Join(err, problem)
		case release < r.Java.Min || release > r.Java.Max:
			err = errors.Join(err, fmt.Errorf("%s is Java %d", path, release))
		default:
			programs[javaProgram] = path
			return nil
		}
	}
	return advice.With(err, "%s fetches one, or set JAVA_HOME", r.command())
}

func javaRelease(ctx context.Context, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// Without the flag a JVM leaves a folder in /tmp.
	out, err := exec.CommandContext(ctx, path, "-XX:-UsePerfData", "-version").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s -version: %w: %s", path, err, out)
	}
	m := javaVersion.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("%s -version printed no version: %q", path, out)
	}
	return strconv.Atoi(string(m[1]))
}

// runtimeSuites maps the Java releases of Debian's openjdk-N-jre-headless to the suite that has them, for systems whose own
// suite lacks them.
var runtimeSuites = map[int]string{11: "bullseye", 17: "bookworm", 21: "trixie", 25: "sid"}

// resolveRuntime returns the Debian packages of a Java runtime, none if this machine has a compatible one. It prefers the
// system's suite and the newest release.
func (s Store) resolveRuntime(ctx context.Context, r Recipe) ([]Package, error) {
	err := r.java(ctx, "", make(map[string]string))
	if err == nil || !errors.Is(err, ErrNoJava) {
		return nil, err
	}
	s.report("%s: %v; fetching one", r.Key(), err)
	for _, elsewhere := range []bool{false, true} {
		for release := r.Java.Max; release >= r.Java.Min; release-- {
			suite, known := runtimeSuites[release]
			if !known {
				continue
			}
			name := fmt.Sprintf("openjdk-%d-jre-headless", release)
			if elsewhere {
				name += "/" + suite
			}
			packages, problem := s.resolve(ctx, r.Name, []string{name}, false)
			if problem == nil {
				return packages, nil
			}
			err = errors.Join(err, problem)
		}
	}
	return nil, err
}
