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
	"runtime"
	"strconv"

	"skerry/internal/install"
)

// sourceFile is where Debian's package mysql-source keeps the source.
const sourceFile = "./usr/src/mysql/mysql-source.tar.gz"

// built are the programs that are compiled, in the order of what they take.
var built = []string{"ndb_mgmd", "ndb_mgm", "ndbmtd"}

// unused are parts of the source that are not unpacked: tests, and Debian's own build.
var unused = []string{"*/mysql-test", "*/unittest", "*/builddir", "*/.pc"}

// standIns are files that CMake wants to read of what is not unpacked.
var standIns = []string{"mysql-test/CMakeLists.txt", "mysql-test/lib/My/SafeProcess/CMakeLists.txt"}

// settings of CMake: everything that NDB's programs do without is off. They are not
// linked to a parser, so that Bison need not be there: CMake is told that it is.
var cmakeSettings = []string{
	"CMAKE_BUILD_TYPE=Release", "CMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "CMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG",
	"WITH_NDB=ON", "WITH_NDB_JAVA=OFF", "WITH_NDB_TEST=OFF", "WITH_NDBAPI_EXAMPLES=OFF",
	"WITH_UNIT_TESTS=OFF", "WITH_ROUTER=OFF", "WITH_MYSQLX=OFF", "WITH_SYSTEMD=OFF",
	"WITH_AUTHENTICATION_LDAP=OFF", "WITH_AUTHENTICATION_KERBEROS=OFF", "WITH_AUTHENTICATION_WEBAUTHN=OFF", "WITH_AUTHENTICATION_CLIENT_PLUGINS=OFF",
	"WITH_SSL=system", "WITH_CURL=none", "WITH_ICU=bundled", "WITH_PROTOBUF=bundled",
	"BISON_EXECUTABLE=/bin/true", "BISON_VERSION=3.8.2",
}

// compile builds NDB's programs from Debian's source of MySQL into usr/sbin below the
// workshop's root. CMake and make go on where they were interrupted.
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
		return fmt.Errorf("making the folder of objects: %w", err)
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

// copyPrograms copies the programs without their symbols, which are most of them.
func copyPrograms(ctx context.Context, objects, sbin string) error {
	if err := os.MkdirAll(sbin, 0o755); err != nil {
		return fmt.Errorf("making the folder of programs: %w", err)
	}
	for _, name := range built {
		from, to := filepath.Join(objects, "runtime_output_directory", name), filepath.Join(sbin, name)
		if out, err := exec.CommandContext(ctx, "strip", "-o", to, from).CombinedOutput(); err != nil {
			return fmt.Errorf("taking %s: %w: %s", name, err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// unpack unpacks the source in a package into the folder to: the archive in the package
// goes through a pipe, since it is as large as what is unpacked.
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
			return errors.Join(fmt.Errorf("looking for %s in %s: %w", sourceFile, filepath.Base(deb), err), dpkg.Wait())
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
