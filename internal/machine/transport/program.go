package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/machine/agent"
)

// program is the file that a machine is given.
type program struct {
	path string
	sum  string // SHA-256
	size int64
}

// find is the program for a system and an architecture, as Go names them: this one, or the file
// beside it that is called skerry-OS-ARCH.
func find(exe, system, arch string) (program, error) {
	p := program{path: exe}
	if system != runtime.GOOS || arch != runtime.GOARCH {
		p.path = filepath.Join(filepath.Dir(exe), "skerry-"+system+"-"+arch)
	}
	st, err := os.Stat(p.path)
	if err != nil {
		err = fmt.Errorf("%w: it is %s on %s: %w", ErrProgram, system, arch, err)
		return p, advice.With(err, "build it: GOOS=%s GOARCH=%s go build -trimpath -o %s ./cmd/skerry", system, arch, p.path)
	}
	p.size = st.Size()
	p.sum, err = agent.Sum(p.path)
	return p, err
}

// architectures are the names that uname has, by Go's.
var architectures = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm", "i686": "386",
	"ppc64le": "ppc64le", "riscv64": "riscv64", "s390x": "s390x",
}

// push has the machine run the program, and gives it where it is missing or another.
func (p *programProcess) push(ctx context.Context, o Options) error {
	is, err := p.await("skerry carrier ")
	if err != nil {
		return err
	}
	system, machine, _ := strings.Cut(is, " ")
	arch := architectures[machine]
	if system != "Linux" || arch == "" {
		return fmt.Errorf("%w: it is %s on %s", ErrProgram, system, machine)
	}
	b, err := find(o.Exe, "linux", arch)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.conn, "%s %d\n", b.sum, b.size); err != nil {
		return p.unanswered(err)
	}
	var sent error
	for {
		line, err := p.conn.Line(noiseLine)
		switch {
		case err != nil:
			return p.unanswered(errors.Join(err, sent))
		case line == "run":
			return nil
		case line == "failed":
			return fmt.Errorf("%w: %s", ErrProgram, p.complaint())
		case line == "send":
			o.Log.DebugContext(ctx, "giving a machine its program", "program", b.path, "bytes", b.size)
			sent = p.send(b) // where that fails, the machine tells why
		}
	}
}

func (p *programProcess) send(b program) error {
	f, err := os.Open(b.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProgram, err)
	}
	defer f.Close()
	_, err = io.Copy(p.conn, f)
	return err
}
