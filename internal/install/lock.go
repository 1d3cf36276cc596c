package install

import (
	"bufio"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
