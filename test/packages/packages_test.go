// Package packages builds and installs Skerry as users do, and runs the quickstart from there.
package packages

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"skerry/internal/database/redis"
	"skerry/test/testkit"
)

const root = "../.."

// inside runs in a new mount namespace, with a package as $1 and a directory as $2. It mounts an overlay over this
// machine's root file system, whose changes are in memory and disappear with the namespace. So dpkg can install and
// remove the package with the machine's own package database.
const inside = `set -eu
place=$2/place
mkdir "$place"
mount -t tmpfs skerry "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay skerry -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
for dir in proc sys dev run tmp; do mount --rbind "/$dir" "$place/root/$dir"; done
cd "$place/root"
export SKERRY_CACHE SKERRY_STATE PATH=/usr/sbin:/usr/bin:/sbin:/bin
cp "$1" "$2/skerry.deb"
chroot . dpkg --install "$2/skerry.deb"
chroot . skerry version
chroot . hydra version
chroot . metad version
test -s usr/share/man/man1/skerry-run.1.gz
test -s usr/share/man/man1/hydra-node.1.gz
test -s usr/share/man/man1/metad-serve.1.gz
for p in skerry hydra metad; do chroot . bash -c ". /usr/share/bash-completion/completions/$p && complete -p $p"; done
chroot . skerry run /usr/share/skerry/experiments/quickstart.yaml --fast --retries 0 --set 'matrix={workload: [a], scale: [0.2]}' --out "$2/runs"
test -s "$2/runs/latest/report.html"
chroot . dpkg --remove skerry
test ! -e usr/bin/skerry
test ! -e usr/bin/hydra
test ! -e usr/bin/metad
`

// The .deb of this tree can be installed, prints its version, has a manual and completion, runs the quickstart, and
// leaves nothing after its removal.
func TestDeb(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN, testkit.FrontEnd, testkit.DpkgDeb, testkit.Installed(redis.Recipe))
	dir := t.TempDir()
	build := exec.Command(filepath.Join(root, "scripts", "package.sh"), dir, runtime.GOARCH, "deb")
	build.Env = append(os.Environ(), "VERSION=0.1.0+gtest")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the package: %v\n%s", err, out)
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("packages: %v %v, want one", debs, err)
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		testkit.Lacks(t, testkit.Mounts, fmt.Errorf("unshare: %w: %s", err, out))
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "bash", "-c", inside, "bash", debs[0], dir)
	cmd.Env = append(os.Environ(), "SKERRY_STATE="+filepath.Join(dir, "state"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if strings.Contains(out.String(), "unknown filesystem type 'overlay'") {
		testkit.Lacks(t, testkit.OverlayVolumes, err)
	}
	if err != nil {
		t.Fatalf("installing and running: %v\n%s", err, &out)
	}
	for _, want := range []string{"skerry 0.1.0+gtest (", "hydra 0.1.0+gtest (", "metad 0.1.0+gtest (", "complete -o default -F __start_skerry skerry", "complete -o default -F __start_hydra hydra"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &out)
		}
	}
}

// The changelog, the citation file and the build have the same version.
func TestRelease(t *testing.T) {
	changelog := find(t, "CHANGELOG.md", `(?m)^## (\d+\.\d+\.\d+) - `)
	citation := find(t, "CITATION.cff", `(?m)^version: (.*)$`)
	if changelog != citation {
		t.Errorf("CHANGELOG.md has %s, CITATION.cff %s", changelog, citation)
	}
	out, err := exec.Command(filepath.Join(root, "scripts", "version.sh")).Output()
	if err != nil || !strings.HasPrefix(string(out), changelog) {
		t.Errorf("scripts/version.sh prints %q (%v), want a version that starts with %s", out, err, changelog)
	}
}

// find returns the first group of a pattern's first match in a file of the repository.
func find(t *testing.T, file, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s has nothing like %s", file, pattern)
	}
	return string(m[1])
}
