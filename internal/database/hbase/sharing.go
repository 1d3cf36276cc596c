package hbase

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/machine/files"
)

// A JVM spends most of its start on reading and verifying classes. An archive of them, as
// they are in memory after that, is mapped by the JVMs that follow (JEP 350). The first
// bridge for administration writes it when it ends, into its node's directory; what it
// wrote is then kept beside the bridge's classes.
//
// Java 11 and 12 do not know the flags and start as before.

const (
	// sharedClasses is the name of an archive in a node's directory.
	sharedClasses = "classes.jsa"
	// writingGrace is what a bridge gets to write it: seconds of an idle processor, in the
	// middle of servers that are at work.
	writingGrace = 30 * time.Second
)

// archiveLogFlags keeps what a JVM has to say of an archive off its output, which holds frames.
var archiveLogFlags = []string{"-XX:+IgnoreUnrecognizedVMOptions", "-Xlog:disable", "-Xlog:all=error:stderr"}

// archivePath is where the archive for the classes in a jar and a Java is kept: one that
// another Java wrote is of no use.
func archivePath(ctx context.Context, on files.System, jar, javaPath string) (string, error) {
	program, err := on.Stat(ctx, javaPath)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", javaPath, err)
	}
	path := program.Path
	sum := sha256.New()
	// What changes with the Java that a path leads to; the program itself may not.
	for _, part := range []string{path, filepath.Join(filepath.Dir(path), "..", "lib", "server", "libjvm.so")} {
		if st, err := on.Stat(ctx, part); err == nil {
			fmt.Fprintln(sum, part, st.Size, st.Modified.UnixNano())
		}
	}
	return strings.TrimSuffix(jar, ".jar") + "-" + hex.EncodeToString(sum.Sum(nil))[:12] + ".jsa", nil
}

// archiveFlags are the flags of a JVM that maps the archive; none where there is none.
func archiveFlags(ctx context.Context, on files.System, jar, javaPath string) []string {
	path, err := archivePath(ctx, on, jar, javaPath)
	if err != nil || !files.Exists(ctx, on, path) {
		return nil // it starts without, or its own start tells
	}
	return append([]string{"-XX:SharedArchiveFile=" + path}, archiveLogFlags...)
}

// archiveSettings is how the bridge for administration starts and ends: it maps the archive, or
// writes it, by way of a path of its own. It is kept only when the cluster was formed: a
// bridge that ends before that has loaded few of the classes that a client needs. An archive
// that cannot be kept is told to the log: all goes on without.
func (c *cluster) archiveSettings(ctx context.Context, own string) (flags []string, ends endPolicy) {
	javaPath := c.Env.Installation.Programs["java"]
	on := c.firstNode().Files()
	if flags = archiveFlags(ctx, on, c.jar, javaPath); flags != nil {
		return flags, endPolicy{bridgeGrace, func() {}}
	}
	flags = append([]string{"-XX:ArchiveClassesAtExit=" + own}, archiveLogFlags...)
	return flags, endPolicy{writingGrace, func() {
		if !c.formed {
			return
		}
		if err := keepArchive(context.WithoutCancel(ctx), on, own, c.jar, javaPath); err != nil {
			c.Log.Info("keeping the classes of HBase's client", "error", err)
		}
	}}
}

// keepArchive keeps what a JVM wrote for those that follow; one that knows no archives wrote nothing.
func keepArchive(ctx context.Context, on files.System, written, jar, javaPath string) error {
	path, err := archivePath(ctx, on, jar, javaPath)
	if err != nil {
		return err
	}
	from, err := on.Open(ctx, written, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	return on.Write(ctx, path, 0o644, from)
}
