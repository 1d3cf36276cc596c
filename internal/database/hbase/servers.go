package hbase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

func (c *cluster) startFirst(ctx context.Context) error {
	h := c.firstNode()
	s := c.site(h)
	if _, err := c.Servers.Start(ctx, h, zooKeeper.spec(c.Env.Installation, s)); err != nil {
		return err
	}
	if c.options.storage == storageHDFS {
		if err := c.format(ctx, s); err != nil {
			return err
		}
		d, err := c.Servers.Start(ctx, h, nameNode.spec(c.Env.Installation, s))
		if err != nil {
			return err
		}
		if err := d.Await(ctx, readyTimeout, func(ctx context.Context) error { return checkListening(ctx, h, portNameNode) }); err != nil {
			return err
		}
		close(c.nameNodeReady)
	}
	_, err := c.Servers.Start(ctx, h, hMaster.spec(c.Env.Installation, s))
	return err
}

func (c *cluster) format(ctx context.Context, s site) error {
	p, err := c.firstNode().Start(ctx, formatter.command(c.Env.Installation, s))
	if err != nil {
		return fmt.Errorf("formatting the NameNode: %w", err)
	}
	select {
	case <-p.Done():
		if p.Err() != nil {
			return fmt.Errorf("formatting the NameNode: %w; the last lines of its log:\n%s", p.Err(), p.Tail(tailLines))
		}
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("formatting the NameNode: %w", context.Cause(ctx)), p.Kill())
	}
}

// startServers starts a node's servers, the DataNode once it can register: a refused one waits for 5 s. The exit
// of a joining server is no failure of the cluster.
func (c *cluster) startServers(ctx context.Context, h host.Host, joining bool) ([]*daemon.Daemon, error) {
	r, err := c.startRole(ctx, h, regionServer, joining)
	if err != nil {
		return nil, err
	}
	if c.options.storage != storageHDFS {
		return []*daemon.Daemon{r}, nil
	}
	select {
	case <-c.nameNodeReady:
	case <-ctx.Done():
		return nil, fmt.Errorf("starting a DataNode on %s: waiting for the NameNode: %w", h.Name(), context.Cause(ctx))
	}
	d, err := c.startRole(ctx, h, dataNode, joining)
	return []*daemon.Daemon{d, r}, err
}

func (c *cluster) startRole(ctx context.Context, h host.Host, r role, joining bool) (*daemon.Daemon, error) {
	installation := c.Env.Installation
	if r.name == hMaster.name || r.name == regionServer.name { // upgrades leave HDFS and ZooKeeper as they are
		installation = c.Installation(h.Name())
	}
	spec := r.spec(installation, c.site(h))
	spec.Joining = joining
	return c.Servers.Start(ctx, h, spec)
}

// checkZooKeeper asks ZooKeeper, from its own node, whether it runs without error.
func (c *cluster) checkZooKeeper(ctx context.Context) error {
	answer, err := c.queryZooKeeper(ctx, "ruok")
	if err == nil && strings.TrimSpace(answer) != "imok" {
		err = fmt.Errorf("it answers %q", answer)
	}
	if err != nil {
		return fmt.Errorf("%w: zookeeper on %s: %w", database.ErrNotReady, c.firstNode().Name(), err)
	}
	return nil
}

func (c *cluster) queryZooKeeper(ctx context.Context, word string) (string, error) {
	conn, err := host.Dialer(c.firstNode(), dialTimeout)(ctx, "tcp4", listenAddress(c.firstNode(), portZooKeeper))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// checkListening returns nil when a server of a node accepts connections from that node.
func checkListening(ctx context.Context, h host.Host, port int) error {
	return host.CheckAccepts(ctx, h, listenAddress(h, port), dialTimeout)
}

func listenAddress(h host.Host, port int) string {
	return net.JoinHostPort(h.Addr(), strconv.Itoa(port))
}

type role struct {
	name  string
	class string
	args  []string
	ports []int
	heap  func(options) int64
	// brief marks a process that lives too short for the optimising compiler to pay.
	brief bool
	// grace is what the server gets between SIGTERM and SIGKILL.
	grace time.Duration
}

var (
	zooKeeper = role{name: "zookeeper", class: "org.apache.zookeeper.server.quorum.QuorumPeerMain", ports: []int{portZooKeeper},
		heap: func(o options) int64 { return o.zookeeper }, brief: true}
	formatter = role{name: "format", class: "org.apache.hadoop.hdfs.server.namenode.NameNode", args: []string{"-format", "-nonInteractive"},
		heap: func(o options) int64 { return o.nameNode }, brief: true}
	nameNode = role{name: "namenode", class: "org.apache.hadoop.hdfs.server.namenode.NameNode", ports: []int{portNameNode},
		heap: func(o options) int64 { return o.nameNode }, brief: true}
	dataNode = role{name: "datanode", class: "org.apache.hadoop.hdfs.server.datanode.DataNode", ports: []int{portDataNode, portDataNodeIPC},
		heap: func(o options) int64 { return o.dataNode }, brief: true}
	hMaster = role{name: "master", class: "org.apache.hadoop.hbase.master.HMaster", args: []string{"start"}, ports: []int{portMaster},
		heap: func(o options) int64 { return o.master }, brief: true}
	regionServer = role{name: "regionserver", class: "org.apache.hadoop.hbase.regionserver.HRegionServer", args: []string{"start"},
		ports: []int{portRegionServer}, heap: func(o options) int64 { return o.regionServer }, grace: 30 * time.Second}
)

// ports is where each server listens for those that need it.
var ports = map[string]int{
	zooKeeper.name: portZooKeeper, nameNode.name: portNameNode, dataNode.name: portDataNode,
	hMaster.name: portMaster, regionServer.name: portRegionServer,
}

// openedModules are the parts of Java that Hadoop, HBase and their libraries reach into.
var openedModules = []string{
	"--add-modules", "jdk.unsupported",
	"--add-opens", "java.base/java.io=ALL-UNNAMED",
	"--add-opens", "java.base/java.lang=ALL-UNNAMED",
	"--add-opens", "java.base/java.lang.reflect=ALL-UNNAMED",
	"--add-opens", "java.base/java.nio=ALL-UNNAMED",
	"--add-opens", "java.base/java.util=ALL-UNNAMED",
	"--add-opens", "java.base/java.util.concurrent=ALL-UNNAMED",
	"--add-opens", "java.base/jdk.internal.ref=ALL-UNNAMED",
	"--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED",
	"--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED",
	"--add-exports", "java.security.jgss/sun.security.krb5=ALL-UNNAMED",
}

func javaArguments(heap int64, brief bool, hostsFile string) []string {
	args := []string{
		fmt.Sprintf("-Xmx%dk", heap>>10), "-Xss256k", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError", "-XX:+DisplayVMOutputToStderr",
		"-Djava.net.preferIPv4Stack=true", "-Dzookeeper.sasl.client=false",
	}
	if brief {
		args = append(args, "-XX:TieredStopAtLevel=1")
	}
	if hostsFile != "" {
		args = append(args, "-Djdk.net.hosts.file="+hostsFile)
	}
	return append(args, openedModules...)
}

// classpath is that of the bridge's classes, its first part, and an installation's jars.
func classpath(jar, root string) string { return jar + ":" + filepath.Join(root, "lib", "*") }

func (r role) command(in database.Installation, s site) host.Command {
	args := javaArguments(r.heap(s.options), r.brief, s.hostsFile())
	args = append(args, "-Djava.io.tmpdir="+s.tmpDir(), "-Dhadoop.log.dir="+s.dir, "-Dhbase.log.dir="+s.dir, "-cp", s.confDir()+":"+classpath(s.jar, in.Dir), r.class)
	args = append(args, r.args...)
	if r.name == zooKeeper.name {
		args = append(args, filepath.Join(s.confDir(), "zoo.cfg"))
	}
	return host.Command{
		Name: r.name, Path: in.Programs["java"], Args: args, Env: in.Env, Dir: s.dir,
		Log: filepath.Join(s.dir, r.name+".log"),
	}
}

func (r role) spec(in database.Installation, s site) daemon.Spec {
	return daemon.Spec{Command: r.command(in, s), Ports: r.ports, Grace: r.grace}
}
