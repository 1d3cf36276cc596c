package install

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
)

// resolve returns name, size and SHA-256 of the packages' files, and with closure those of their dependencies, from apt's
// signed lists.
func (s Store) resolve(ctx context.Context, database string, names []string, closure bool) ([]Package, error) {
	for _, tool := range []string{"apt-get", "dpkg"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, advice.With(fmt.Errorf("installing %s: %w: %w", database, ErrNoApt, err),
				"install %s yourself, then: skerry install %s --from PATH", database, database)
		}
	}
	var all []Package
	for len(names) > 0 {
		// apt is called once per suite, in the given order.
		_, suite, _ := strings.Cut(names[0], "/")
		var batch, rest []string
		for _, n := range names {
			if name, of, _ := strings.Cut(n, "/"); of == suite {
				batch = append(batch, name)
			} else {
				rest = append(rest, n)
			}
		}
		names = rest
		packages, err := s.resolveIn(ctx, suite, batch, closure)
		if err != nil {
			return nil, fmt.Errorf("installing %s: %w", database, err)
		}
		all = append(all, packages...)
	}
	return all, nil
}

// resolveIn resolves packages of one suite, "" for the system's.
func (s Store) resolveIn(ctx context.Context, suite string, names []string, closure bool) ([]Package, error) {
	var env []string
	if suite != "" {
		unlock, err := s.lock(ctx, filepath.Join("apt", suite))
		if err != nil {
			return nil, err
		}
		defer unlock()
		if env, err = s.apt(ctx, suite); err != nil {
			return nil, err
		}
	}
	if closure {
		var err error
		if names, err = dependencies(ctx, env, names); err != nil {
			return nil, err
		}
	}
	// apt omits files that exist in its working directory.
	out, err := command(ctx, "/", env, "apt-get", append([]string{"download", "--print-uris", "-qq"}, names...)...)
	if err != nil {
		return nil, unknown(fmt.Errorf("querying apt for packages: %w", err))
	}
	packages, err := parseURIs(out)
	if err != nil {
		return nil, err
	}
	if len(packages) != len(names) {
		return nil, fmt.Errorf("apt named %d files for %d packages", len(packages), len(names))
	}
	for i := range packages {
		packages[i].Suite = suite
	}
	return packages, nil
}

// unknown marks the error of an apt without package lists.
func unknown(err error) error {
	for _, text := range []string{"Unable to locate package", "find a source to download", "no installation candidate", "Can't select candidate version"} {
		if strings.Contains(err.Error(), text) {
			return advice.With(fmt.Errorf("%w: %w", ErrNoLists, err), "fetch apt's lists first: sudo apt-get update")
		}
	}
	return err
}

// dependencies returns the packages with all their dependencies, including installed ones.
func dependencies(ctx context.Context, env, names []string) ([]string, error) {
	args := append([]string{"install", "-s", "-qq", "--no-install-recommends"}, names...)
	out, err := command(ctx, "", env, "apt-get", args...)
	if err != nil {
		return nil, unknown(fmt.Errorf("querying apt for dependencies: %w", err))
	}
	var all []string
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() { // "Inst libc6 (2.41-12 Debian:unstable [amd64])"
		if f := strings.Fields(lines.Text()); len(f) > 1 && f[0] == "Inst" {
			all = append(all, f[1])
		}
	}
	return all, lines.Err()
}

// parseURIs parses the output of apt-get --print-uris, one file per line:
//
//	'http://.../redis-tools_7.0.15.deb' redis-tools_5%3a7.0.15-1_amd64.deb 991988 SHA256:f791...
func parseURIs(out []byte) ([]Package, error) {
	var packages []Package
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 4 {
			return nil, fmt.Errorf("apt-get printed %q: want an address, a file, a size and a checksum", line)
		}
		size, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("apt-get printed %q: the size: %w", line, err)
		}
		sum, ok := strings.CutPrefix(f[3], "SHA256:")
		if !ok || !isSHA256(sum) {
			return nil, fmt.Errorf("apt-get printed %q: want a SHA-256 checksum", line)
		}
		parts := strings.Split(f[1], "_")
		if len(parts) != 3 || strings.ContainsRune(f[1], '/') {
			return nil, fmt.Errorf("apt-get printed %q: want a file named name_version_architecture.deb", line)
		}
		version, err := url.PathUnescape(parts[1])
		if err != nil {
			return nil, fmt.Errorf("apt-get printed %q: the version: %w", line, err)
		}
		packages = append(packages, Package{Name: parts[0], Version: version, File: f[1], Size: size, SHA256: sum})
	}
	return packages, lines.Err()
}

func isSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size
}

// fetchDeb downloads a package unless it exists, and verifies it.
func (s Store) fetchDeb(ctx context.Context, downloads string, p Package, of string) error {
	path := filepath.Join(downloads, p.File)
	if verify(path, p) == nil {
		s.report("%s %s: fetched before (%s)", p.Name, p.Version, of)
		return nil
	}
	s.report("%s %s: fetching %d kB (%s)", p.Name, p.Version, (p.Size+999)/1000, of)
	var env []string
	if p.Suite != "" {
		env = aptEnv(s.suiteDir(p.Suite))
	}
	// apt drops root's rights for downloads and warns if its user cannot write here.
	if _, err := command(ctx, downloads, env, "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", p.Name+"="+p.Version); err != nil {
		err = fmt.Errorf("fetching %s: %w", p.Name, err)
		if ctx.Err() != nil {
			return err
		}
		return advice.With(err, "apt's lists may be old: run apt-get update as root, then try again")
	}
	if err := verify(path, p); err != nil {
		os.Remove(path) // apt would keep it
		return advice.With(fmt.Errorf("fetching %s: %w", p.Name, err), "try again; if it persists, update apt's lists: sudo apt-get update")
	}
	return nil
}

// command returns a program's output. The error includes standard error.
func command(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), env...) // messages are matched above
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(complaint.String()))
	}
	return out.Bytes(), nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}

// Fetchable returns why the system's apt cannot fetch a recipe's packages, nil if it can. It ignores packages of other
// suites and jars.
func Fetchable(ctx context.Context, r Recipe) error {
	var own []string
	for _, p := range r.Packages {
		if !strings.Contains(p, "/") {
			own = append(own, p)
		}
	}
	if len(own) == 0 {
		return nil
	}
	_, err := Store{}.resolve(ctx, r.Name, own, false)
	return err
}
