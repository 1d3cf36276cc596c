package install

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skerry/internal/advice"
)

// Install fetches and unpacks the recipe's Debian packages. An installation that is
// in use already and runs is kept as it is. An install that was interrupted goes on
// with the packages that it had fetched.
func (s Store) Install(ctx context.Context, r Recipe) (Manifest, error) {
	unlock, err := s.lock(ctx, r.Name)
	if err != nil {
		return Manifest{}, err
	}
	defer unlock()
	if m, root, err := s.Current(r.Name); err == nil && m.Source == FromDebian {
		if _, err := r.check(ctx, root); err == nil {
			s.say("%s %s is installed", r.Name, m.Version)
			return m, nil
		}
		s.say("%s: the installation in the cache does not run, installing it again", r.Name)
	}
	packages, err := resolve(ctx, r)
	if err != nil {
		return Manifest{}, err
	}
	downloads := filepath.Join(s.Dir, "downloads")
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return Manifest{}, fmt.Errorf("making the cache folder: %w", err)
	}
	for i, p := range packages {
		if err := s.fetch(ctx, downloads, p, fmt.Sprintf("%d/%d", i+1, len(packages))); err != nil {
			return Manifest{}, err
		}
	}
	m, err := s.unpack(ctx, r, downloads, packages)
	if err != nil {
		return Manifest{}, err
	}
	for _, p := range packages {
		if err := os.Remove(filepath.Join(downloads, p.File)); err != nil {
			return m, fmt.Errorf("removing a package that was unpacked: %w", err)
		}
	}
	return m, nil
}

func (s Store) unpack(ctx context.Context, r Recipe, downloads string, packages []Package) (Manifest, error) {
	tmp, err := os.MkdirTemp(filepath.Join(s.Dir, r.Name), ".new-")
	if err != nil {
		return Manifest{}, fmt.Errorf("unpacking %s: %w", r.Name, err)
	}
	defer os.RemoveAll(tmp)
	root := filepath.Join(tmp, rootName)
	var sums bytes.Buffer
	for _, p := range packages {
		s.say("%s: unpacking %s", r.Name, p.Name)
		if _, err := command(ctx, downloads, "dpkg", "-x", p.File, root); err != nil {
			return Manifest{}, fmt.Errorf("unpacking %s: %w", p.File, err)
		}
		sums.WriteString(p.SHA256)
	}
	version, err := r.check(ctx, root)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Schema: ManifestSchema, Database: r.Name, Version: version, Source: FromDebian,
		Installed: time.Now().UTC().Truncate(time.Second), Packages: packages}
	if err := s.publish(m, tmp, version+"-"+digest(sums.Bytes())); err != nil {
		return Manifest{}, err
	}
	s.say("%s %s installed", r.Name, version)
	return m, nil
}

// check runs the server below root for its version.
func (r Recipe) check(ctx context.Context, root string) (string, error) {
	programs, err := r.programs(root)
	if err != nil {
		return "", err
	}
	return r.probe(ctx, programs, libraryPath(root))
}

// resolve asks apt which files the recipe's packages are in: name, size and SHA-256
// stand in its lists, which are signed.
func resolve(ctx context.Context, r Recipe) ([]Package, error) {
	for _, tool := range []string{"apt-get", "dpkg"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, advice.With(fmt.Errorf("installing %s: %w: %w", r.Name, ErrNoApt, err),
				"install %s yourself, then: skerry install %s --from PATH", r.Name, r.Name)
		}
	}
	out, err := command(ctx, "", "apt-get", append([]string{"download", "--print-uris", "-qq"}, r.Packages...)...)
	if err != nil {
		if strings.Contains(err.Error(), "Unable to locate package") || strings.Contains(err.Error(), "find a source to download") ||
			strings.Contains(err.Error(), "no installation candidate") {
			err = fmt.Errorf("installing %s: %w: %w", r.Name, ErrNoLists, err)
			return nil, advice.With(err, "fetch apt's lists first: sudo apt-get update")
		}
		return nil, fmt.Errorf("installing %s: asking apt for its packages: %w", r.Name, err)
	}
	packages, err := parseURIs(out)
	if err != nil {
		return nil, fmt.Errorf("installing %s: %w", r.Name, err)
	}
	if len(packages) != len(r.Packages) {
		return nil, fmt.Errorf("installing %s: apt named %d files for %d packages", r.Name, len(packages), len(r.Packages))
	}
	return packages, nil
}

// parseURIs reads what apt-get --print-uris prints, a line a file:
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
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size {
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

// fetch downloads one package unless it is there, and checks it.
func (s Store) fetch(ctx context.Context, downloads string, p Package, of string) error {
	path := filepath.Join(downloads, p.File)
	if verify(path, p) == nil {
		s.say("%s %s: fetched before (%s)", p.Name, p.Version, of)
		return nil
	}
	s.say("%s %s: fetching %d kB (%s)", p.Name, p.Version, (p.Size+999)/1000, of)
	// apt drops root's rights for downloads and warns when its own user cannot write here.
	if _, err := command(ctx, downloads, "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", p.Name+"="+p.Version); err != nil {
		err = fmt.Errorf("fetching %s: %w", p.Name, err)
		if ctx.Err() != nil {
			return err
		}
		return advice.With(err, "apt's lists may be old: run apt-get update as root, then try again")
	}
	if err := verify(path, p); err != nil {
		os.Remove(path) // apt would keep it
		return advice.With(fmt.Errorf("fetching %s: %w", p.Name, err), "try again; if it stays, fetch apt's lists anew: sudo apt-get update")
	}
	return nil
}

// verify compares a file with what apt's lists say of it.
func verify(path string, p Package) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); n != p.Size || sum != p.SHA256 {
		return fmt.Errorf("%s: %w: %d bytes, SHA-256 %s; apt's lists say %d bytes, %s", p.File, ErrChecksum, n, sum, p.Size, p.SHA256)
	}
	return nil
}

// command runs a program and returns what it printed; its error holds what it
// complained of.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C") // messages are matched above
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

// Fetchable says why a recipe's packages cannot be fetched, nil when they can.
func Fetchable(ctx context.Context, r Recipe) error {
	_, err := resolve(ctx, r)
	return err
}
