package install_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/install"
	"skerry/test/testkit"
)

// shop is a database with packages of its vendor: a server, and an optional router.
var shop = install.Recipe{
	Name: "shop", Programs: []string{"shopd"}, Optional: []string{"shops"}, VersionArgs: []string{"--version"},
	Manual:  "the packages of its maker",
	Version: func(out string) string { return strings.TrimPrefix(out, "shop ") },
}

// deb creates a package in dir with a program in usr/bin that prints text.
func deb(t *testing.T, dir, name, architecture, program, text string) string {
	t.Helper()
	tree := t.TempDir()
	for path, content := range map[string]string{
		"DEBIAN/control":     "Package: " + name + "\nVersion: 7.0-1\nArchitecture: " + architecture + "\nMaintainer: x <x@example.org>\nDescription: x\n",
		"usr/bin/" + program: "#!/bin/sh\necho " + text + "\n",
	} {
		path = filepath.Join(tree, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, name+"_7.0-1_"+architecture+".deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "-Znone", "-b", tree, file).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	return file
}

// Packages downloaded by the user are installed, as files and as a folder.
func TestOwnPackages(t *testing.T) {
	testkit.Need(t, testkit.DpkgDeb)
	dir := t.TempDir()
	server, router := deb(t, dir, "shop-server", "all", "shopd", "shop 7.0"), deb(t, dir, "shop-router", "all", "shops", "shop 7.0")
	for name, test := range map[string]struct {
		from     []string
		packages int
	}{"files": {[]string{server, router}, 2}, "a folder": {[]string{dir}, 2}, "the server alone": {[]string{server}, 1}} {
		s := install.Store{Dir: t.TempDir()}
		m, err := s.Put(t.Context(), shop, test.from)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Version != "7.0" || m.Source != install.FromPackages || len(m.Packages) != test.packages || m.Packages[0].SHA256 == "" {
			t.Errorf("%s: %+v", name, m)
		}
		in, err := s.Find(t.Context(), shop, "")
		if err != nil || !strings.HasPrefix(in.Programs["shopd"], s.Dir) || len(in.Programs) != test.packages {
			t.Errorf("%s: found %+v, %v", name, in, err)
		}
	}
	for _, file := range []string{server, router} {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a user's package was removed: %v", err)
		}
	}
}

// Packages that cannot be installed are rejected, and the installation in use stays.
func TestOwnPackagesRefused(t *testing.T) {
	testkit.Need(t, testkit.DpkgDeb)
	dir := t.TempDir()
	server, router := deb(t, dir, "shop-server", "all", "shopd", "shop 7.0"), deb(t, dir, "shop-router", "all", "shops", "shop 7.0")
	torn := filepath.Join(dir, "torn.deb")
	if err := os.WriteFile(torn, []byte("!<arch>\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := install.Store{Dir: t.TempDir()}
	if _, err := s.Put(t.Context(), shop, []string{server}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		from []string
		want error
		say  string
	}{
		"another architecture":   {[]string{deb(t, dir, "shop-server", "mips", "shopd", "shop 7.0")}, install.ErrNotRunning, "mips"},
		"without the server":     {[]string{router}, nil, "shopd"},
		"a package and a folder": {[]string{server, t.TempDir()}, install.ErrMixed, server},
		"two folders":            {[]string{t.TempDir(), dir}, install.ErrMixed, dir},
		"torn":                   {[]string{torn}, nil, torn},
		"not there":              {[]string{filepath.Join(dir, "none.deb")}, fs.ErrNotExist, "none.deb"},
	} {
		_, err := s.Put(t.Context(), shop, test.from)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.say) {
			t.Errorf("%s: %v, want %v with %q", name, err, test.want, test.say)
		}
	}
	if in, err := s.Find(t.Context(), shop, ""); err != nil || in.Version != "7.0" {
		t.Errorf("the installation in use: %+v, %v", in, err)
	}
	_, err := s.Find(t.Context(), shop, server)
	if next := advice.Of(err); err == nil || !strings.Contains(next, "skerry install shop --from "+server) {
		t.Errorf("an experiment with a package: %v, advice %q", err, next)
	}
}
