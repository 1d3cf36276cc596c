package cassandra

import (
	"fmt"
	"strconv"
	"time"
)

// mainClass is the server's.
const mainClass = "org.apache.cassandra.service.CassandraDaemon"

// smallHeap is up to where the collector without threads of its own is the best one.
const smallHeap = 1 << 30

// opened are the packages of Java that Cassandra reaches into, from the jvm17 options of
// its own archives.
var (
	exportedPackages = []string{
		"java.base/jdk.internal.misc", "java.base/jdk.internal.ref", "java.base/sun.nio.ch",
		"java.management.rmi/com.sun.jmx.remote.internal.rmi", "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server",
		"java.rmi/sun.rmi.transport.tcp", "java.sql/java.sql",
	}
	openedPackages = []string{
		"java.base/java.lang.module", "java.base/jdk.internal.loader", "java.base/jdk.internal.ref",
		"java.base/jdk.internal.reflect", "java.base/jdk.internal.math", "java.base/jdk.internal.module",
		"java.base/jdk.internal.util.jar", "jdk.management/com.sun.management.internal", "java.base/sun.nio.ch",
		"java.base/java.io", "java.base/java.nio", "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
		"java.base/java.util", "java.base/java.lang", "java.base/java.lang.reflect", "java.base/java.math", "java.base/java.net",
	}
)

// javaArguments are those of java for a member.
func (c config) javaArguments(l libraries, ringDelay time.Duration) []string {
	heap := strconv.FormatInt(c.heap>>20, 10) + "m"
	args := []string{
		"-Xms" + heap, "-Xmx" + heap, "-Xss256k", "-XX:MaxDirectMemorySize=128m", collectorFlag(c.heap),
		"-XX:+ExitOnOutOfMemoryError", "-XX:+PerfDisableSharedMem",
		"-Djava.security.manager=allow", "-Djdk.attach.allowAttachSelf=true", "-Djava.io.tmpdir=" + c.dir + "/tmp",
		"-javaagent:" + l.jamm,
		// With a thread for each question, members answer others while one leaves or drains.
		fmt.Sprintf("-javaagent:%s=host=%s,port=%d,discoveryEnabled=false,executor=cached", l.jolokia, c.listen, c.adminPort),
		"-Dcassandra.config=file://" + c.confPath("cassandra.yaml"),
		"-Dcassandra-rackdc.properties=file://" + c.confPath("cassandra-rackdc.properties"),
		"-Dlogback.configurationFile=" + c.confPath("logback.xml"),
		"-Dcassandra.storagedir=" + c.dir, "-Dcassandra.logdir=" + c.dir,
		// The wait for gossip to settle is a fixed time; here the members are asked.
		"-Dcassandra.skip_wait_for_gossip_to_settle=0",
		"-Dcassandra.load_ring_state=false",
		"-Dcassandra.enable_nodelocal_queries=true", // for those that read one member's copies
		"-Dcassandra.superuser_setup_delay_ms=0",
		"-Dcassandra.ring_delay_ms=" + strconv.FormatInt(ringDelay.Milliseconds(), 10),
	}
	for _, p := range exportedPackages {
		args = append(args, "--add-exports="+p+"=ALL-UNNAMED")
	}
	for _, p := range openedPackages {
		args = append(args, "--add-opens="+p+"=ALL-UNNAMED")
	}
	return append(args, "-cp", l.classpath, mainClass)
}

func collectorFlag(heap int64) string {
	if heap <= smallHeap {
		return "-XX:+UseSerialGC"
	}
	return "-XX:+UseG1GC"
}
