package install

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"skerry/internal/base/advice"
)

// mirrorEnv names a Debian mirror for machines whose apt has none.
const mirrorEnv = "SKERRY_DEBIAN"

// debianKeys are the archive keys of the package debian-archive-keyring.
const debianKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

// suiteDir is the folder of apt's files for a suite.
func (s Store) suiteDir(suite string) string { return filepath.Join(s.Dir, "apt", suite) }

// aptEnv makes apt use a folder of its own.
func aptEnv(dir string) []string { return []string{"APT_CONFIG=" + filepath.Join(dir, "apt.conf")} }

// apt returns an environment in which apt sees another suite of the system's mirror and no installed packages. It downloads
// the suite's lists; apt verifies their signature.
func (s Store) apt(ctx context.Context, suite string) ([]string, error) {
	mirror, keys, err := debianMirror(ctx)
	if err != nil {
		return nil, fmt.Errorf("taking packages from Debian's %s: %w", suite, err)
	}
	dir := s.suiteDir(suite)
	proxies, err := aptProxies(ctx)
	if err != nil {
		return nil, err
	}
	if err := writeApt(dir, proxies, mirror, keys, suite); err != nil {
		return nil, fmt.Errorf("configuring apt for Debian's %s: %w", suite, err)
	}
	s.report("fetching apt's lists of Debian's %s", suite)
	env := aptEnv(dir)
	update := []string{"update", "-qq", "--error-on=any"}
	_, err = command(ctx, "", env, "apt-get", update...)
	if err != nil && strings.Contains(err.Error(), "is expired") {
		// An outdated mirror withholds updates, but cannot forge signed lists.
		s.report("the mirror %s lags behind: its lists of Debian's %s have expired; they are signed and used all the same", mirror, suite)
		_, err = command(ctx, "", env, "apt-get", append(update, "-o", "Acquire::Check-Valid-Until=false")...)
	}
	if err != nil {
		return nil, fmt.Errorf("fetching apt's lists of Debian's %s: %w", suite, err)
	}
	return env, nil
}

// aptProxies returns the part of the system's configuration that concerns connections. Everything else, such as hooks, is
// dropped.
func aptProxies(ctx context.Context) (string, error) {
	out, err := command(ctx, "", nil, "apt-config", "dump", "Acquire")
	if err != nil {
		return "", fmt.Errorf("asking apt how it fetches: %w", err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(strings.ToLower(line), "acquire::http") { // and https
			kept.WriteString(line)
		}
	}
	return kept.String(), nil
}

func writeApt(dir, proxies, mirror, keys, suite string) error {
	for _, d := range []string{"lists/partial", "cache/archives/partial", "etc/parts"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	var source strings.Builder
	fmt.Fprintf(&source, "Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n", mirror, suite)
	if keys != "" {
		fmt.Fprintf(&source, "Signed-By: %s\n", keys)
	}
	conf := proxies + fmt.Sprintf(`
Dir::State %[1]q;
Dir::State::lists %[2]q;
Dir::State::status %[3]q;
Dir::Cache %[4]q;
Dir::Etc %[5]q;
Dir::Etc::main "none";
Dir::Etc::parts "parts";
Dir::Etc::sourcelist "debian.sources";
Dir::Etc::sourceparts "parts";
Dir::Etc::preferences "none";
Dir::Etc::preferencesparts "parts";
Acquire::Languages "none";
APT::Sandbox::User "root";
`, dir, filepath.Join(dir, "lists"), filepath.Join(dir, "status"), filepath.Join(dir, "cache"), filepath.Join(dir, "etc"))
	for name, text := range map[string]string{"etc/debian.sources": source.String(), "apt.conf": conf, "status": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// debianMirror returns the configured Debian mirror and the file with its keys.
func debianMirror(ctx context.Context) (mirror, keys string, err error) {
	if mirror = os.Getenv(mirrorEnv); mirror != "" {
		return mirror, keysIn(""), nil
	}
	out, err := command(ctx, "", nil, "apt-get", "indextargets", "--format",
		"$(CREATED_BY)|$(ORIGIN)|$(LABEL)|$(REPO_URI)|$(SOURCESENTRY)", "Created-By: Packages")
	if err != nil {
		return "", "", fmt.Errorf("asking apt for its mirror: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		f := strings.Split(lines.Text(), "|")
		if len(f) == 5 && f[0] == "Packages" && f[1] == "Debian" && f[2] == "Debian" {
			entry, _, _ := strings.Cut(f[4], ":")
			return f[3], keysIn(entry), lines.Err()
		}
	}
	return "", "", advice.With(ErrNoMirror, "run apt-get update as root where this is Debian; elsewhere install the package "+
		"debian-archive-keyring and set %s to the address of a mirror of Debian", mirrorEnv)
}

// signedBy finds the key file in a list of sources of either format.
var signedBy = regexp.MustCompile(`(?i)signed-by\s*[:=]\s*(/[^\s\],]+)`)

// keysIn returns the key file of a list of sources, else Debian's usual one, else "": apt then uses its trusted keys.
func keysIn(sources string) string {
	if text, err := os.ReadFile(sources); err == nil {
		if m := signedBy.FindSubmatch(text); m != nil {
			return string(m[1])
		}
	}
	if _, err := os.Stat(debianKeys); err == nil {
		return debianKeys
	}
	return ""
}
