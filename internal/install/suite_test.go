package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aptStub replaces apt: it answers for a system with the mirror deb.invalid, and knows valkey only with the
// configuration of another suite.
const aptStub = `#!/bin/sh
echo "$(basename $0) $*" >> "$ASKED"
case "$(basename $0) $*" in
"apt-config dump Acquire") echo 'Acquire::http::Proxy "http://proxy.invalid";'; echo 'Acquire::GzipIndexes "true";' ;;
"apt-get indextargets"*) echo "Packages|Debian|Debian|http://deb.invalid/debian/|$SOURCES:1" ;;
"apt-get update"*Check-Valid-Until*) ;;
"apt-get update"*) echo "E: Release file is expired (invalid since 15d)." >&2; exit 100 ;;
"apt-get install -s"*) printf 'Inst libc6 (2.42 Debian:unstable [amd64])\nInst valkey (9 x)\nConf valkey (9 x)\n' ;;
"apt-get download --print-uris"*)
	case "$APT_CONFIG,$*" in
	,*valkey*) echo "E: Unable to locate package valkey" >&2; exit 100 ;;
	esac
	shift 3
	for p in "$@"; do echo "'http://deb.invalid/$p.deb' ${p}_9_amd64.deb 10 SHA256:` + sum + `"; done ;;
*) exit 1 ;;
esac
`

func TestOtherSuite(t *testing.T) {
	bin, asked := t.TempDir(), filepath.Join(t.TempDir(), "asked")
	for _, name := range []string{"apt-get", "apt-config", "dpkg"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(aptStub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sources := filepath.Join(t.TempDir(), "debian.sources")
	if err := os.WriteFile(sources, []byte("Types: deb\nSigned-By: /keys/debian.gpg\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("ASKED", asked)
	t.Setenv("SOURCES", sources)
	t.Setenv(mirrorEnv, "")
	var said strings.Builder
	s := Store{Dir: t.TempDir(), Progress: func(step string) { said.WriteString(step + "\n") }}

	packages, err := s.resolve(t.Context(), "valkey", []string{"valkey/sid", "liblzf1"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 2 || packages[0].Name != "valkey" || packages[0].Suite != "sid" || packages[1].Suite != "" {
		t.Errorf("resolved %+v", packages)
	}
	if !strings.Contains(said.String(), "lags behind") {
		t.Errorf("expired lists were not reported: %q", said.String())
	}
	source, err := os.ReadFile(filepath.Join(s.Dir, "apt/sid/etc/debian.sources"))
	if want := "Types: deb\nURIs: http://deb.invalid/debian/\nSuites: sid\nComponents: main\nSigned-By: /keys/debian.gpg\n"; err != nil || string(source) != want {
		t.Errorf("sources %q, %v; want %q", source, err, want)
	}
	conf, err := os.ReadFile(filepath.Join(s.Dir, "apt/sid/apt.conf"))
	if err != nil || !strings.Contains(string(conf), "proxy.invalid") || strings.Contains(string(conf), "GzipIndexes") {
		t.Errorf("configuration %s, %v", conf, err)
	}

	if packages, err = s.resolve(t.Context(), "valkey", []string{"valkey/sid"}, true); err != nil || len(packages) != 2 || packages[0].Name != "libc6" {
		t.Errorf("with dependencies: %+v, %v", packages, err)
	}
	if _, err := s.resolve(t.Context(), "valkey", []string{"valkey"}, false); err == nil {
		t.Error("the system's suite has an unknown package")
	}
}

// A program of a closure runs: the loader is a script that prints its arguments.
func TestLoader(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": "#!/bin/sh\necho \"$@\"\n",
		"usr/sbin/demo-server":                          "\x7fELF",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := demo.wrapPrograms(root); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "root")
	if err := os.Rename(root, moved); err != nil {
		t.Fatal(err)
	}
	programs, err := demo.programs(moved)
	if err != nil || libraryPath(moved) != nil {
		t.Fatalf("%v, %v, %v", programs, libraryPath(moved), err)
	}
	out, err := command(t.Context(), "", nil, programs["demo-server"], "--port", "1")
	lib, program := moved+"/usr/lib/x86_64-linux-gnu", moved+"/usr/sbin/demo-server"
	if want := "--library-path " + lib + " --argv0 " + program + " " + program + ".elf --port 1\n"; err != nil || string(out) != want {
		t.Errorf("called with %q, %v; want %q", out, err, want)
	}
}
