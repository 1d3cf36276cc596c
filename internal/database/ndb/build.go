package ndb

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/tail"
	"skerry/internal/install"
)

// sourceFile is where Debian's package mysql-source keeps the source.
const sourceFile = "./usr/src/mysql/mysql-source.tar.gz"

// built are the compiled programs, in the order of their build times.
var built = []string{"ndb_mgmd", "ndb_mgm", "ndbmtd"}

// unused are parts of the source that are not unpacked: tests, and Debian's own build.
var unused = []string{"*/mysql-test", "*/unittest", "*/builddir", "*/.pc"}

// standIns are files that CMake reads although their folders are not unpacked.
var standIns = []string{"mysql-test/CMakeLists.txt", "mysql-test/lib/My/SafeProcess/CMakeLists.txt"}

// cmakeSettings turn off what NDB's programs do not need. Bison is named but not needed: no parser is built.
var cmakeSettings = []string{
	"CMAKE_BUILD_TYPE=Release", "CMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "CMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG",
	"WITH_NDB=ON", "WITH_NDB_JAVA=OFF", "WITH_NDB_TEST=OFF", "WITH_NDBAPI_EXAMPLES=OFF",
	"WITH_UNIT_TESTS=OFF", "WITH_ROUTER=OFF", "WITH_MYSQLX=OFF", "WITH_SYSTEMD=OFF",
	"WITH_AUTHENTICATION_LDAP=OFF", "WITH_AUTHENTICATION_KERBEROS=OFF", "WITH_AUTHENTICATION_WEBAUTHN=OFF",
	"WITH_AUTHENTICATION_CLIENT_PLUGINS=OFF",
	"WITH_SSL=system", "WITH_CURL=none", "WITH_ICU=bundled", "WITH_PROTOBUF=bundled",
	"BISON_EXECUTABLE=/bin/true", "BISON_VERSION=3.8.2",
}

// compile builds NDB's programs from Debian's source of MySQL into usr/sbin. It resumes an interrupted build.
func compile(ctx context.Context, w install.Workshop) error {
	source, objects := filepath.Join(w.Work, "src"), filepath.Join(w.Work, "obj")
	unpacked := filepath.Join(w.Work, "unpacked")
	if _, err := os.Stat(unpacked); errors.Is(err, os.ErrNotExist) {
		w.Say("unpacking the source")
		if err := unpack(ctx, w.Package, source); err != nil {
			return fmt.Errorf("unpacking the source: %w", err)
		}
		if err := os.WriteFile(unpacked, nil, 0o644); err != nil {
			return fmt.Errorf("unpacking the source: %w", err)
		}
	}
	if err := os.MkdirAll(objects, 0o755); err != nil {
		return fmt.Errorf("creating the folder of objects: %w", err)
	}
	generator, tool := "Ninja", "ninja"
	if _, err := exec.LookPath(tool); err != nil {
		generator, tool = "Unix Makefiles", "make"
	}
	log := filepath.Join(w.Work, "build.log")
	if _, err := os.Stat(filepath.Join(objects, "configured")); errors.Is(err, os.ErrNotExist) {
		w.Say("configuring it (log: %s)", log)
		args := []string{"-G", generator, source}
		for _, s := range cmakeSettings {
			args = append(args, "-D"+s)
		}
		if err := logged(ctx, log, objects, nil, "cmake", args...); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(objects, "configured"), nil, 0o644); err != nil {
			return fmt.Errorf("configuring: %w", err)
		}
	}
	p := &progress{say: func(percent int) { w.Say("compiling: %d %%", percent) }}
	if err := logged(ctx, log, objects, p, tool, append([]string{"-j" + strconv.Itoa(runtime.NumCPU())}, built...)...); err != nil {
		return err
	}
	return copyPrograms(ctx, objects, filepath.Join(w.Root, "usr/sbin"))
}

// copyPrograms copies the programs without their symbols, which are most of their size.
func copyPrograms(ctx context.Context, objects, sbin string) error {
	if err := os.MkdirAll(sbin, 0o755); err != nil {
		return fmt.Errorf("creating the folder of programs: %w", err)
	}
	for _, name := range built {
		from, to := filepath.Join(objects, "runtime_output_directory", name), filepath.Join(sbin, name)
		if out, err := exec.CommandContext(ctx, "strip", "-o", to, from).CombinedOutput(); err != nil {
			return fmt.Errorf("extracting %s: %w: %s", name, err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// unpack unpacks the archive in a package into the folder to, through a pipe to save disk space.
func unpack(ctx context.Context, deb, to string) (err error) {
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dpkg := exec.CommandContext(ctx, "dpkg", "--fsys-tarfile", deb)
	out, err := dpkg.StdoutPipe()
	if err != nil {
		return err
	}
	if err := dpkg.Start(); err != nil {
		return err
	}
	files := tar.NewReader(out)
	for {
		h, err := files.Next()
		if err != nil {
			cancel()
			return errors.Join(fmt.Errorf("finding %s in %s: %w", sourceFile, filepath.Base(deb), err), dpkg.Wait())
		}
		if h.Name == sourceFile {
			break
		}
	}
	args := []string{"-xz", "--strip-components=1", "-C", to}
	for _, u := range unused {
		args = append(args, "--exclude="+u)
	}
	extract := exec.CommandContext(ctx, "tar", args...)
	extract.Stdin = files
	if text, err := extract.CombinedOutput(); err != nil {
		cancel()
		return errors.Join(fmt.Errorf("tar: %w: %s", err, bytes.TrimSpace(text)), dpkg.Wait())
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		return errors.Join(err, dpkg.Wait())
	}
	if err := dpkg.Wait(); err != nil {
		return fmt.Errorf("dpkg: %w", err)
	}
	for _, f := range standIns {
		path := filepath.Join(to, f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// logged runs a program in a folder with its output in a log and, if given, to watch. The error holds the log's
// error lines.
func logged(ctx context.Context, log, dir string, watch io.Writer, name string, args ...string) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("writing the build's log: %w", err)
	}
	last := tail.New(tailSize)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C")
	writers := []io.Writer{f, last}
	if watch != nil {
		writers = append(writers, watch)
	}
	cmd.Stdout = io.MultiWriter(writers...)
	cmd.Stderr = cmd.Stdout
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case err != nil:
		err = fmt.Errorf("%s: %w; all of it is in %s, and here are lines that tell why:\n%s", name, err, log, failureLines(last.String()))
	}
	return errors.Join(err, f.Close())
}

// tailSize is in bytes: a compiler's error is of some hundred, among those of others.
const tailSize = 64 << 10

// trouble begins what compilers, make and CMake have to say of errors.
var trouble = regexp.MustCompile(`(?i)\b(error|fatal|undefined reference|killed|no space left)\b`)

// failureLines returns the last lines that report errors, or the last lines if none does.
func failureLines(text string) string {
	lines := strings.Split(text, "\n")
	quiet := func(l string) bool { return progressLine.MatchString(l) || !trouble.MatchString(l) } // a file may be called error.cpp
	if told := slices.DeleteFunc(slices.Clone(lines), quiet); len(told) > 0 {
		lines = told
	}
	return strings.Join(lines[max(0, len(lines)-6):], "\n")
}

type progress struct {
	say  func(percent int)
	line []byte
	told int // last reported percentage
}

// progressStep is how many per cent lie between two messages.
const progressStep = 5

// progressLine is "[ 34%] Building ..." of make or "[12/643] Building ..." of ninja.
var progressLine = regexp.MustCompile(`^\[\s*(\d+)(?:%|/(\d+))\]`)

func (p *progress) Write(b []byte) (int, error) {
	p.line = append(p.line, b...)
	for {
		i := bytes.IndexByte(p.line, '\n')
		if i < 0 {
			return len(b), nil
		}
		if n, ok := percent(string(p.line[:i])); ok && n >= p.told+progressStep {
			p.told = n
			p.say(n)
		}
		p.line = p.line[i+1:]
	}
}

func percent(line string) (int, bool) {
	m := progressLine.FindStringSubmatch(line)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || m[2] == "" {
		return n, err == nil
	}
	all, err := strconv.Atoi(m[2])
	if err != nil || all == 0 {
		return 0, false
	}
	return 100 * n / all, true
}
