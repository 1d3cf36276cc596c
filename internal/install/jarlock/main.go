// Command jarlock makes the lock of jars that a Recipe embeds. Maven (mvn) resolves coordinates with their run-time
// dependencies and downloads the jars; jarlock prints a line for each with checksum and size. The first coordinates are the
// database's own.
//
//	go run ./internal/install/jarlock org.apache.cassandra:cassandra-all:5.0.9 > jars-5.0.lock
//
// -pom reads the dependencies from a pom.xml, for exclusions and managed versions. The first is the database's own.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/install"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jarlock:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var pom string
	c := &cobra.Command{
		Use: "jarlock GROUP:ARTIFACT:VERSION... | --pom FILE GROUP:ARTIFACT", Args: cobra.MinimumNArgs(1),
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			jars, err := resolve(cmd.Context(), pom, args)
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), args, jars)
		},
	}
	c.Flags().StringVar(&pom, "pom", "", "take the dependencies of this pom.xml")
	return c
}

const copyGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

var errCoordinates = errors.New("not GROUP:ARTIFACT:VERSION")

// resolve downloads the jars into a folder laid out as a repository, whose paths contain their coordinates.
func resolve(ctx context.Context, pom string, coordinates []string) ([]install.Jar, error) {
	dir, err := os.MkdirTemp("", "jarlock-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if pom == "" {
		text, err := project(coordinates)
		if err != nil {
			return nil, err
		}
		pom = filepath.Join(dir, "pom.xml")
		if err := os.WriteFile(pom, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	repository := filepath.Join(dir, "repository")
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-q", "-f", pom, copyGoal, "-DincludeScope=runtime", "-DincludeTypes=jar",
		"-Dmdep.useRepositoryLayout=true", "-DoutputDirectory="+repository)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("having mvn resolve %s: %w", strings.Join(coordinates, " "), err)
	}
	return scan(repository)
}

// project returns a pom.xml with the coordinates as dependencies.
func project(coordinates []string) (string, error) {
	var b strings.Builder
	b.WriteString("<project><modelVersion>4.0.0</modelVersion><groupId>lock</groupId><artifactId>lock</artifactId><version>1</version>" +
		"<packaging>pom</packaging><dependencies>\n")
	for _, c := range coordinates {
		p := strings.Split(c, ":")
		if len(p) != 3 {
			return "", fmt.Errorf("%q: %w", c, errCoordinates)
		}
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", p[0], p[1], p[2])
	}
	b.WriteString("</dependencies></project>\n")
	return b.String(), nil
}

// scan lists the jars of a repository: GROUP/ARTIFACT/VERSION/ARTIFACT-VERSION[-CLASSIFIER].jar.
func scan(repository string) ([]install.Jar, error) {
	var jars []install.Jar
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jar" {
			return err
		}
		rel, err := filepath.Rel(repository, path)
		if err != nil {
			return err
		}
		p := strings.Split(filepath.ToSlash(rel), "/")
		if len(p) < 4 {
			return fmt.Errorf("%s: %w", rel, errCoordinates)
		}
		n := len(p)
		j := install.Jar{Group: strings.Join(p[:n-3], "."), Artifact: p[n-3], Version: p[n-2]}
		name := strings.TrimSuffix(p[n-1], ".jar")
		j.Classifier = strings.TrimPrefix(strings.TrimPrefix(name, j.Artifact+"-"+j.Version), "-")
		if j.Size, j.SHA256, err = sum(path); err != nil {
			return err
		}
		jars = append(jars, j)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the jars that mvn fetched: %w", err)
	}
	return jars, nil
}

func sum(path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// write prints the lock: the requested coordinates in order, then the others by name.
func write(w io.Writer, requested []string, jars []install.Jar) error {
	rank := func(j install.Jar) int {
		i := slices.IndexFunc(requested, func(a string) bool { return strings.HasPrefix(j.String()+":", a+":") && j.Classifier == "" })
		if i < 0 {
			return len(requested)
		}
		return i
	}
	slices.SortFunc(jars, func(a, b install.Jar) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.String(), b.String()))
	})
	var total int64
	for _, j := range jars {
		total += j.Size
	}
	if _, err := fmt.Fprintf(w, "# %d jars, %d bytes: go run ./internal/install/jarlock %s\n", len(jars), total, strings.Join(requested, " ")); err != nil {
		return err
	}
	for _, j := range jars {
		if _, err := fmt.Fprintf(w, "%s %9d %s\n", j.SHA256, j.Size, j); err != nil {
			return err
		}
	}
	return nil
}
