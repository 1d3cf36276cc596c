package install

import (
	"bufio"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
)

const (
	// mavenEnv names a Maven repository that overrides the user's configuration.
	mavenEnv = "SKERRY_MAVEN"
	// mavenCentral is Maven's default repository.
	mavenCentral = "https://repo.maven.apache.org/maven2"
	// parallel is the number of concurrent downloads.
	parallel = 6
)

// fetchJars downloads missing jars into the folder and verifies all.
func (s Store) fetchJars(ctx context.Context, database, downloads string, jars []Jar) error {
	base, err := mavenBase()
	if err != nil {
		return fmt.Errorf("installing %s: %w", database, err)
	}
	var missing []Jar
	var bytes int64
	for _, j := range jars {
		if verify(filepath.Join(downloads, j.File()), j.pack()) != nil {
			missing = append(missing, j)
			bytes += j.Size
		}
	}
	if len(missing) == 0 {
		s.report("%s: %d jars were fetched before", database, len(jars))
		return nil
	}
	s.report("%s: fetching %d of %d jars, %d MB", database, len(missing), len(jars), (bytes+999_999)/1_000_000)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	var done atomic.Int32
	for _, j := range missing {
		g.Go(func() error {
			path := filepath.Join(downloads, j.File())
			if err := download(gctx, base+"/"+j.Path(), path, j.Size); err != nil {
				return advice.With(fmt.Errorf("fetching %s: %w", j, err),
					"try again: the download resumes; a mirror is taken from ~/.m2/settings.xml or %s", mavenEnv)
			}
			if err := verify(path, j.pack()); err != nil {
				return errors.Join(advice.With(fmt.Errorf("fetching %s: %w", j, err), "try again, or another mirror: %s", mavenEnv), os.Remove(path))
			}
			s.report("%s: fetched %s (%d/%d)", database, j.File(), done.Add(1), len(missing))
			return nil
		})
	}
	return g.Wait()
}

func (j Jar) pack() Package {
	name := j.Group + ":" + j.Artifact
	if j.Classifier != "" {
		name += ":" + j.Classifier
	}
	return Package{Name: name, Version: j.Version, File: j.File(), Size: j.Size, SHA256: j.SHA256}
}

// jarVersion returns the version of the database's own jar below root: the first of the lock, or "apache-NAME-VERSION.jar"
// as in Apache's archives.
func (r Recipe) jarVersion(root string) (string, error) {
	jars, err := ParseLock(r.Jars)
	if err != nil {
		return "", fmt.Errorf("the lock of %s: %w", r.Key(), err)
	}
	for _, stem := range []string{jars[0].Artifact, "apache-" + r.Name} {
		matches, _ := filepath.Glob(filepath.Join(root, libDir, stem+"-[0-9]*.jar")) // the pattern is well-formed
		if len(matches) > 0 {
			name := filepath.Base(matches[len(matches)-1])
			return strings.TrimSuffix(strings.TrimPrefix(name, stem+"-"), ".jar"), nil
		}
	}
	return "", fmt.Errorf("no %s-VERSION.jar in %s: %w", jars[0].Artifact, filepath.Join(root, libDir), os.ErrNotExist)
}

// mavenBase is the repository to use: SKERRY_MAVEN, else the mirror of Central in ~/.m2/settings.xml, else Central.
func mavenBase() (string, error) {
	if base := os.Getenv(mavenEnv); base != "" {
		return strings.TrimRight(base, "/"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return mavenCentral, nil
	}
	path := filepath.Join(home, ".m2", "settings.xml")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return mavenCentral, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Maven's settings: %w", err)
	}
	base, err := centralMirror(text)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return base, nil
}

// centralMirror returns the mirror of Central in settings.xml, or Central.
func centralMirror(settings []byte) (string, error) {
	var s struct {
		Mirrors []struct {
			Of  string `xml:"mirrorOf"`
			URL string `xml:"url"`
		} `xml:"mirrors>mirror"`
	}
	if err := xml.Unmarshal(settings, &s); err != nil {
		return "", err
	}
	for _, m := range s.Mirrors {
		if mirrorsCentral(m.Of) && m.URL != "" {
			return strings.TrimRight(strings.TrimSpace(m.URL), "/"), nil
		}
	}
	return mavenCentral, nil
}

// mirrorsCentral evaluates Maven's mirrorOf: repository IDs, "*" for all, "external:*" for all remote ones; "!id" excludes
// one.
func mirrorsCentral(of string) bool {
	matches := false
	for _, id := range strings.Split(of, ",") {
		switch strings.TrimSpace(id) {
		case "!central":
			return false
		case "*", "central", "external:*":
			matches = true
		}
	}
	return matches
}

// Jar is a line of a lock: a file of Maven Central with its checksum.
type Jar struct {
	Group, Artifact, Version string
	Classifier               string // "" for most: "linux-x86_64"
	Size                     int64
	SHA256                   string
}

// coordinate restricts coordinates, because they become parts of paths.
var coordinate = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// ParseLock parses a lock of jars. Each line has a SHA-256, a size in bytes and coordinates; # begins a comment.
//
//	f791...  11153104  org.apache.cassandra:cassandra-all:5.0.9
//	03bd...     42314  io.netty:netty-transport-native-epoll:4.1.96.Final:linux-x86_64
func ParseLock(text string) ([]Jar, error) {
	var jars []Jar
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 3 {
			return nil, fmt.Errorf("%w: line %d: %d fields, want a checksum, a size and coordinates", ErrLock, n, len(f))
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || size <= 0 {
			return nil, fmt.Errorf("%w: line %d: size %q", ErrLock, n, f[1])
		}
		if !isSHA256(f[0]) || strings.ToLower(f[0]) != f[0] {
			return nil, fmt.Errorf("%w: line %d: %q is no SHA-256 in lower case", ErrLock, n, f[0])
		}
		c := strings.Split(f[2], ":")
		if bad := slices.IndexFunc(c, func(p string) bool { return !coordinate.MatchString(p) || strings.Contains(p, "..") }); bad >= 0 || len(c) < 3 || len(c) > 4 {
			return nil, fmt.Errorf("%w: line %d: %q is not group:artifact:version", ErrLock, n, f[2])
		}
		j := Jar{Group: c[0], Artifact: c[1], Version: c[2], Size: size, SHA256: f[0]}
		if len(c) == 4 {
			j.Classifier = c[3]
		}
		jars = append(jars, j)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLock, err)
	}
	if len(jars) == 0 {
		return nil, fmt.Errorf("%w: it names no jar", ErrLock)
	}
	return jars, nil
}

// String returns the coordinates as in a lock.
func (j Jar) String() string {
	c := j.Group + ":" + j.Artifact + ":" + j.Version
	if j.Classifier != "" {
		c += ":" + j.Classifier
	}
	return c
}

func (j Jar) File() string {
	name := j.Artifact + "-" + j.Version
	if j.Classifier != "" {
		name += "-" + j.Classifier
	}
	return name + ".jar"
}

// Path is the jar's path in a repository.
func (j Jar) Path() string {
	return strings.ReplaceAll(j.Group, ".", "/") + "/" + j.Artifact + "/" + j.Version + "/" + j.File()
}
