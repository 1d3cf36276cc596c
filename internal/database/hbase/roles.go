package hbase

import (
	"fmt"
	"path/filepath"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// role is one kind of server of a cluster.
type role struct {
	name  string
	class string
	args  []string
	ports []int
	heap  func(options) int64
	// brief is whether the process lives too short, or works too little, for the
	// optimising compiler to pay: it takes CPU from the others while all start.
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

// javaArguments are the arguments of every Java process, without class path and class.
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

// command runs the role on a node.
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

// spec is the server of the role on a node.
func (r role) spec(in database.Installation, s site) daemon.Spec {
	return daemon.Spec{Command: r.command(in, s), Ports: r.ports, Grace: r.grace}
}
