package hbase

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const portBridge = 16040

// sharedBridge is a bridge on the client's node that outlives the drivers of a reused cluster, so that clients find a
// warm JVM.
//
//	driver ─► bridge ══ connection ══► Java on the same node ─► region servers
//
// Each driver has its own connection, and new ones to the servers: a connection from the load phase does not know the
// distances of the measurement (CUBIC leaves slow start early if round trips grow).
type sharedBridge struct {
	*bridge
	addr string
}

// ensureSharedBridge starts a shared bridge if none runs. After a failure, clients start their own.
func (c *cluster) ensureSharedBridge(ctx context.Context) {
	if c.Env.Control == nil || c.sharedBridgeAddr() != "" {
		return
	}
	if c.sharedBridge != nil {
		_ = c.sharedBridge.Close() // it has ended, and its clients have received the error
	}
	s, err := c.startSharedBridge(ctx)
	if err != nil {
		c.Log.Info("keeping a client of HBase", "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sharedBridge = s
}

func (c *cluster) startSharedBridge(ctx context.Context) (*sharedBridge, error) {
	s, err := parseSettings(c.Properties())
	if err != nil {
		return nil, err
	}
	h := c.Env.Control
	addr := net.JoinHostPort(host.Listen(h), strconv.Itoa(portBridge))
	run := s.bridgeCommand(ctx, h.Files(), property{"bridge.listen", addr})
	b, err := startBridgeOn(ctx, h, run, h.Dir(), filepath.Join(h.Dir(), "bridge.log"), endPolicy{bridgeGrace, func() {}})
	if err != nil {
		return nil, err
	}
	if err := b.warmUp(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &sharedBridge{b, addr}, nil
}

func (c *cluster) sharedBridgeAddr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sharedBridge == nil {
		return ""
	}
	select {
	case <-c.sharedBridge.done:
		return ""
	default:
		return c.sharedBridge.addr
	}
}

func dialBridge(ctx context.Context, addr string) (*bridge, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to the bridge: %w", err)
	}
	return newBridge(conn, conn, conn.Close), nil
}

// warmUp locates all regions and does one operation, so that no worker's first operation waits for that. An
// error means that the bridge or the time has ended.
func (b *bridge) warmUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	c := &client{bridge: b, slot: b.acquireSlot(), timeout: warmTimeout}
	defer b.releaseSlot(c.slot)
	_, _ = admin{b}.query(ctx, "places", table)
	if _, err := c.Read(ctx, table, "user", nil, nil); errors.Is(err, errBridge) || ctx.Err() != nil {
		return err
	}
	return nil
}

const warmTimeout = 60 * time.Second

// A JVM spends most of its start on reading and verifying classes. Later JVMs map an archive of the loaded classes
// (JEP 350), which the first administration bridge writes at its end. Java 11 and 12 ignore the flags.

const (
	// sharedClasses is the name of an archive in a node's directory.
	sharedClasses = "classes.jsa"
	// writingGrace bounds the writing of the archive: seconds of an idle processor, more next to busy servers.
	writingGrace = 30 * time.Second
)

// archiveLogFlags keep messages about archives out of the standard output, which carries frames.
var archiveLogFlags = []string{"-XX:+IgnoreUnrecognizedVMOptions", "-Xlog:disable", "-Xlog:all=error:stderr"}

// archivePath returns the path of the archive for a jar and a Java; another Java cannot use it.
func archivePath(ctx context.Context, on files.System, jar, javaPath string) (string, error) {
	program, err := on.Stat(ctx, javaPath)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", javaPath, err)
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

func archiveFlags(ctx context.Context, on files.System, jar, javaPath string) []string {
	path, err := archivePath(ctx, on, jar, javaPath)
	if err != nil || !files.Exists(ctx, on, path) {
		return nil // it starts without, or its own start tells
	}
	return append([]string{"-XX:SharedArchiveFile=" + path}, archiveLogFlags...)
}

// archiveSettings returns the flags of the administration bridge, which maps the archive or writes one, and how it
// ends. The archive is kept only if the cluster was formed: earlier, few of a client's classes are loaded.
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

// keepArchive stores a written archive for later bridges, if the JVM supports archives.
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
