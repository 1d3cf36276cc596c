package cassandra

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"skerry/internal/machine/files"
)

const defaultCenter = "dc1"

const rack = "rack1"

type config struct {
	options
	dir       string // the member's own
	listen    string // the address that it binds to
	addr      string // the one that others know it by
	center    string
	seeds     []string // addresses
	tokens    []int64  // of a member of a new cluster; nil: Cassandra chooses
	bootstrap bool     // take data over from the others when the member is new
}

func (c config) confPath(name string) string { return filepath.Join(c.dir, "conf", name) }

func (c config) write(ctx context.Context, on files.System) error {
	for _, d := range []string{filepath.Join(c.dir, "conf"), filepath.Join(c.dir, "tmp")} {
		if err := on.MakeDir(ctx, d); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"cassandra.yaml":              c.yaml(),
		"cassandra-rackdc.properties": fmt.Sprintf("dc=%s\nrack=%s\n", escapeProperty(c.center), rack),
		"logback.xml":                 logback,
	} {
		if err := files.WriteText(ctx, on, c.confPath(name), text); err != nil {
			return err
		}
	}
	return nil
}

// yaml is cassandra.yaml. Its names are those of 4.1 and later,
// https://cassandra.apache.org/doc/5.0/cassandra/managing/configuration/cass_yaml_file.html.
func (c config) yaml() string {
	var b strings.Builder
	set := func(name string, value any) { fmt.Fprintf(&b, "%s: %v\n", name, value) }
	path := func(name, folder string) { set(name, strconv.Quote(filepath.Join(c.dir, folder))) }

	set("cluster_name", "skerry")
	set("partitioner", "org.apache.cassandra.dht.Murmur3Partitioner")
	set("endpoint_snitch", "GossipingPropertyFileSnitch")
	set("listen_address", c.listen)
	set("rpc_address", c.listen)
	if c.addr != c.listen {
		set("broadcast_address", c.addr)
		set("broadcast_rpc_address", c.addr)
	}
	set("storage_port", c.storagePort)
	set("native_transport_port", c.nativePort)
	fmt.Fprintf(&b, "seed_provider:\n- class_name: org.apache.cassandra.locator.SimpleSeedProvider\n  parameters:\n  - seeds: %q\n",
		strings.Join(c.seeds, ","))
	set("auto_bootstrap", c.bootstrap)
	set("num_tokens", c.options.tokens)
	if len(c.tokens) > 0 {
		set("initial_token", strconv.Quote(joinTokens(c.tokens)))
	} else {
		set("allocate_tokens_for_local_replication_factor", c.replication)
	}

	fmt.Fprintf(&b, "data_file_directories:\n- %q\n", filepath.Join(c.dir, "data"))
	path("commitlog_directory", "commitlog")
	path("saved_caches_directory", "saved_caches")
	path("hints_directory", "hints")
	path("cdc_raw_directory", "cdc")
	set("commitlog_sync", c.commitlogSync)
	switch c.commitlogSync {
	case "periodic":
		set("commitlog_sync_period", formatMillis(c.commitlogPeriod.Milliseconds()))
	case "group":
		set("commitlog_sync_group_window", formatMillis(c.commitlogPeriod.Milliseconds()))
	}
	set("disk_failure_policy", c.diskFailure)
	set("commit_failure_policy", commitPolicy(c.diskFailure))
	set("hinted_handoff_enabled", c.hints)
	set("phi_convict_threshold", c.phi)
	set("internode_compression", "dc")
	set("auto_snapshot", false) // TRUNCATE would keep the rows in one

	// Sizes for many small members on one machine.
	set("memtable_heap_space", formatMiB(c.memtable))
	set("memtable_offheap_space", "32MiB")
	set("commitlog_segment_size", "8MiB")
	set("commitlog_total_space", "128MiB")
	set("file_cache_size", "32MiB")
	set("networking_cache_size", "16MiB")
	set("key_cache_size", "8MiB")
	set("counter_cache_size", "0MiB")
	set("concurrent_compactors", 1)
	return b.String()
}

func escapeProperty(name string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(name)) {
		if u < 0x80 && (u >= '0' && u <= '9' || u >= 'A' && u <= 'Z' || u >= 'a' && u <= 'z' || u == '-' || u == '_') {
			b.WriteByte(byte(u))
		} else {
			fmt.Fprintf(&b, `\u%04X`, u)
		}
	}
	return b.String()
}

func formatMillis(n int64) string { return strconv.FormatInt(n, 10) + "ms" }
func formatMiB(n int64) string    { return strconv.FormatInt(n>>20, 10) + "MiB" }

func joinTokens(tokens []int64) string {
	var words []string
	for _, t := range tokens {
		words = append(words, strconv.FormatInt(t, 10))
	}
	return strings.Join(words, ",")
}

func commitPolicy(disk string) string {
	if disk == "die" || disk == "ignore" {
		return disk
	}
	return "stop"
}

// logback writes to standard output, which the node appends to the member's log.
const logback = `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
`

const mainClass = "org.apache.cassandra.service.CassandraDaemon"

// smallHeap is the largest heap for which the serial collector is best.
const smallHeap = 1 << 30

// opened are the Java packages that Cassandra opens by reflection, from its own jvm17 options.
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
