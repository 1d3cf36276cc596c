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

// program is the file to push.
type program struct {
	path string
	sum  string // SHA-256
	size int64
}

// findProgram returns the program for a system and architecture (Go's names): this one, or the file skerry-OS-ARCH next to
// it.
func findProgram(exe, system, arch string) (program, error) {
	p := program{path: exe}
	if system != runtime.GOOS || arch != runtime.GOARCH {
		p.path = filepath.Join(filepath.Dir(exe), "skerry-"+system+"-"+arch)
	}
	st, err := os.Stat(p.path)
	if err != nil {
		err = fmt.Errorf("%w: it is %s on %s: %w", ErrNoProgram, system, arch, err)
		return p, advice.With(err, "build it: GOOS=%s GOARCH=%s go build -trimpath -o %s ./cmd/skerry", system, arch, p.path)
	}
	p.size = st.Size()
	p.sum, err = agent.FileSHA256(p.path)
	return p, err
}

// architectures maps the names of uname to Go's.
var architectures = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm", "i686": "386",
	"ppc64le": "ppc64le", "riscv64": "riscv64", "s390x": "s390x",
}

// pushProgram starts the program on the machine and first copies it if it is missing or different.
func (p *agentProcess) pushProgram(ctx context.Context, o Options) error {
	is, err := p.readUntil("skerry carrier ")
	if err != nil {
		return err
	}
	system, machine, _ := strings.Cut(is, " ")
	arch := architectures[machine]
	if system != "Linux" || arch == "" {
		return fmt.Errorf("%w: it is %s on %s", ErrNoProgram, system, machine)
	}
	b, err := findProgram(o.Exe, "linux", arch)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.conn, "%s %d\n", b.sum, b.size); err != nil {
		return p.startError(err)
	}
	var sent error
	for {
		line, err := p.conn.ReadLine(maxLineBytes)
		switch {
		case err != nil:
			return p.startError(errors.Join(err, sent))
		case line == "run":
			return nil
		case line == "failed":
			return fmt.Errorf("%w: %s", ErrNoProgram, p.stderrText())
		case line == "send":
			o.Log.DebugContext(ctx, "giving a machine its program", "program", b.path, "bytes", b.size)
			sent = p.sendFile(b) // where that fails, the machine tells why
		}
	}
}

func (p *agentProcess) sendFile(b program) error {
	f, err := os.Open(b.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	defer f.Close()
	_, err = io.Copy(p.conn, f)
	return err
}
