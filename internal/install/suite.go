package install

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"skerry/internal/base/advice"
)

// mirrorEnv names a Debian mirror for machines whose apt has none.
const mirrorEnv = "SKERRY_DEBIAN"

// debianKeys are the archive keys of the package debian-archive-keyring.
const debianKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

// suiteDir is the folder of apt's files for a suite.
func (s Store) suiteDir(suite string) string { return filepath.Join(s.Dir, "apt", suite) }

// aptEnv makes apt use a separate folder.
func aptEnv(dir string) []string { return []string{"APT_CONFIG=" + filepath.Join(dir, "apt.conf")} }

// apt returns an environment in which apt sees another suite of the system's mirror and no installed packages. It downloads
// the suite's lists; apt verifies their signature.
func (s Store) apt(ctx context.Context, suite string) ([]string, error) {
	mirror, keys, err := debianMirror(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetching packages from Debian's %s: %w", suite, err)
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
		return "", fmt.Errorf("reading the settings of apt: %w", err)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(strings.ToLower(line), "acquire::http") { // and https
			lines.WriteString(line)
		}
	}
	return lines.String(), nil
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
		return "", "", fmt.Errorf("querying apt for its mirror: %w", err)
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

// Companion is a program that is built and packaged together with the running one.
type Companion struct {
	Name string
	// Variable is the environment variable that may hold the path of the program.
	Variable string
}

// Programs of this module.
var (
	Skerry = Companion{Name: "skerry", Variable: "SKERRY_PROGRAM"}
	Hydra  = Companion{Name: "hydra", Variable: "SKERRY_HYDRA"}
	Metad  = Companion{Name: "metad", Variable: "SKERRY_METAD"}
)

var ErrNoCompanion = errors.New("program not found")

// versionTimeout bounds the run of a program's version command.
const versionTimeout = 10 * time.Second

// Find returns the absolute path of the program: the value of Variable, else the file next to the running executable,
// else the one in PATH.
func (c Companion) Find() (string, error) {
	if path := os.Getenv(c.Variable); path != "" {
		return c.at(path, c.Variable)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	if path := filepath.Join(filepath.Dir(self), c.Name); executable(path) {
		return path, nil
	}
	path, err := exec.LookPath(c.Name)
	if err != nil {
		return "", advice.With(fmt.Errorf("%w: %s is neither next to %s nor in PATH", ErrNoCompanion, c.Name, self),
			"run make build or install the package, which have it; or set %s to its path", c.Variable)
	}
	return filepath.Abs(path)
}

// at returns the absolute path of the program that a user named by means of source.
func (c Companion) at(path, source string) (string, error) {
	if !executable(path) {
		return "", advice.With(fmt.Errorf("%w: %s of %s is not an executable file", ErrNoCompanion, path, source), "set %s to the path of %s", source, c.Name)
	}
	return filepath.Abs(path)
}

// Install returns the program as an installation of a database: the one at from, or the one that Find returns if from
// is empty. It runs the program to read its version.
func (c Companion) Install(database, from string) (Installation, error) {
	in := Installation{Database: database}
	var path string
	var err error
	if from != "" {
		in.Source = FromPath
		path, err = c.at(from, "--from "+database)
	} else {
		path, err = c.Find()
	}
	if err != nil {
		return in, err
	}
	in.Programs = map[string]string{c.Name: path}
	in.Version, err = c.version(path)
	return in, err
}

// version returns the version that the program at path prints.
func (c Companion) version(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, "version", "--json").Output()
	var printed struct {
		Version string `json:"version"`
	}
	if err == nil {
		err = json.Unmarshal(text, &printed)
	}
	if err != nil {
		return "", advice.With(fmt.Errorf("reading the version of %s: %w", path, err), "is it %s? %s version --json prints it", c.Name, path)
	}
	return printed.Version, nil
}
