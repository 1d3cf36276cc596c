package hbase

import (
	"context"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Ports of the servers, which are HBase's, HDFS' and ZooKeeper's own.
const (
	portZooKeeper    = 2181
	portNameNode     = 8020
	portDataNode     = 9866
	portDataNodeIPC  = 9867
	portMaster       = 16000
	portRegionServer = 16020
)

type site struct {
	options
	master string // address of the first node
	addr   string // of this node
	dir    string // of this node
	shared string // the directory that all nodes share (storage: directory)
	hosts  string // text of the hosts file
	// jar has the bridge's classes. HDFS uses one of them.
	jar string
	// exclude names the DataNodes that are to leave, one address a line.
	exclude string
}

type property struct{ name, value string }

func (s site) root() string {
	if s.storage == storageDirectory {
		return "file://" + s.shared
	}
	return fmt.Sprintf("hdfs://%s:%d/hbase", s.master, portNameNode)
}

// coreSite is core-site.xml: which file system, and how long to try to reach it.
func (s site) coreSite() []property {
	p := []property{
		{"hadoop.tmp.dir", s.tmpDir()},
		// A lost DataNode is given up after 2 s; leases of its writers are not recovered before.
		{"ipc.client.connect.retry.interval", "200"},
		{"ipc.client.connect.max.retries", "10"},
		{"hadoop.security.token.service.use_ip", "true"},
	}
	if s.storage == storageDirectory {
		// The file system with checksums keeps the last 512 bytes back on a flush, which would lose the log's end.
		return append(p, property{"fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem"})
	}
	return append(p,
		property{"fs.defaultFS", fmt.Sprintf("hdfs://%s:%d", s.master, portNameNode)},
		property{"hadoop.rpc.socket.factory.class.default", "bridge.OwnAddress"},
		property{"bridge.address", s.addr},
	)
}

// hdfsSite is hdfs-site.xml. A DataNode that is silent for 20 s is dead (2 x recheck + 10 x heartbeat).
func (s site) hdfsSite() []property {
	at := func(name string, port int) string { return name + ":" + strconv.Itoa(port) }
	return []property{
		{"dfs.namenode.rpc-address", at(s.master, portNameNode)},
		{"dfs.namenode.http-address", at(s.master, 0)},
		{"dfs.namenode.name.dir", "file://" + filepath.Join(s.dir, "namenode")},
		{"dfs.datanode.data.dir", "file://" + filepath.Join(s.dir, "datanode")},
		{"dfs.replication", strconv.Itoa(s.replication)},
		{"dfs.permissions.enabled", "false"},
		{"dfs.namenode.datanode.registration.ip-hostname-check", "false"},
		{"dfs.namenode.safemode.extension", "0"},
		// The master waits until files can be written.
		{"dfs.namenode.safemode.min.datanodes", strconv.Itoa(s.replication)},
		{"dfs.namenode.handler.count", "8"},
		{"dfs.namenode.heartbeat.recheck-interval", "5000"},
		{"dfs.namenode.decommission.interval", "1"},
		{"dfs.namenode.redundancy.interval.seconds", "1"},
		// Retry a lost copy after this; the default of five minutes delays a leave after an abrupt one.
		{"dfs.namenode.reconstruction.pending.timeout-sec", "30"},
		{"dfs.namenode.stale.datanode.interval", "5000"},
		{"dfs.namenode.avoid.read.stale.datanode", "true"},
		{"dfs.namenode.avoid.write.stale.datanode", "true"},
		{"dfs.hosts.exclude", s.exclude},
		{"dfs.heartbeat.interval", "1"},
		{"dfs.datanode.address", at(s.addr, portDataNode)},
		{"dfs.datanode.ipc.address", at(s.addr, portDataNodeIPC)},
		{"dfs.datanode.http.address", at(s.addr, 0)},
		{"dfs.datanode.hostname", s.addr},
		{"dfs.datanode.handler.count", "4"},
	}
}

func (s site) hbaseSite() []property {
	return []property{
		{"hbase.rootdir", s.root()},
		{"hbase.cluster.distributed", "true"},
		{"hbase.tmp.dir", s.tmpDir()},
		{"hbase.zookeeper.quorum", s.master},
		{"hbase.zookeeper.property.clientPort", strconv.Itoa(portZooKeeper)},
		{"zookeeper.session.timeout", strconv.FormatInt(s.session.Milliseconds(), 10)},
		{"hbase.master.hostname", s.addr},
		{"hbase.master.ipc.address", s.addr},
		{"hbase.master.info.port", "-1"},
		{"hbase.regionserver.hostname", s.addr},
		{"hbase.regionserver.ipc.address", s.addr},
		{"hbase.regionserver.info.port", "-1"},
		{"hbase.regionserver.handler.count", strconv.Itoa(s.handlers)},
		{"hbase.regionserver.msginterval", "1000"},
		{"hbase.wal.provider", s.wal},
		// How often the master asks whether the NameNode has left its safe mode.
		{"hbase.server.thread.wakefrequency", "500"},
		// Interval between requests to close an open log; the default is 64 s.
		{"hbase.lease.recovery.dfs.timeout", "6000"},
		{"hbase.master.wait.on.regionservers.mintostart", "1"},
		{"hbase.master.wait.on.regionservers.timeout", "500"},
		{"hbase.master.wait.on.regionservers.interval", "100"},
		// Equal numbers of regions per server. The stochastic balancer takes half a minute and may skip small clusters.
		{"hbase.master.loadbalancer.class", "org.apache.hadoop.hbase.master.balancer.SimpleLoadBalancer"},
		{"hbase.master.loadbalance.bytable", "true"},
		{"hbase.regions.slop", "0"},
		// Every written region takes a chunk; the default of 2 MiB suits heaps of gigabytes.
		{"hbase.hregion.memstore.mslab.chunksize", strconv.Itoa(512 << 10)},
	}
}

// zooCfg is zoo.cfg: one server, which grants the session timeout that is asked for.
func (s site) zooCfg() string {
	ms := s.session.Milliseconds()
	return fmt.Sprintf("tickTime=1000\ndataDir=%s\nclientPort=%d\nclientPortAddress=%s\nmaxClientCnxns=0\n"+
		"minSessionTimeout=2000\nmaxSessionTimeout=%d\nadmin.enableServer=false\n4lw.commands.whitelist=ruok\n",
		filepath.Join(s.dir, "zookeeper"), portZooKeeper, s.addr, max(ms, 20_000))
}

// log4j logs to standard output, without the line for every NameNode request.
const log4j = `log4j.rootLogger=INFO,console
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=WARN
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c{1} %m%n
`

func (s site) confDir() string   { return filepath.Join(s.dir, "conf") }
func (s site) hostsFile() string { return filepath.Join(s.dir, "hosts") }

// tmpDir is the directory for files that killed servers do not remove.
func (s site) tmpDir() string { return filepath.Join(s.dir, "tmp") }

func (s site) write(ctx context.Context, on files.System) error {
	conf := s.confDir()
	// Servers of HDFS need the folders of their web pages, even empty ones.
	for _, d := range []string{filepath.Join(conf, "webapps/hdfs"), filepath.Join(conf, "webapps/datanode"), s.tmpDir()} {
		if err := on.MakeDir(ctx, d); err != nil {
			return err
		}
	}
	for path, text := range map[string]string{
		filepath.Join(conf, "core-site.xml"):    siteXML(s.coreSite()),
		filepath.Join(conf, "hdfs-site.xml"):    siteXML(s.hdfsSite()),
		filepath.Join(conf, "hbase-site.xml"):   siteXML(s.hbaseSite()),
		filepath.Join(conf, "zoo.cfg"):          s.zooCfg(),
		filepath.Join(conf, "log4j.properties"): log4j,
		s.hostsFile():                           s.hosts,
	} {
		if err := files.WriteText(ctx, on, path, text); err != nil {
			return err
		}
	}
	return nil
}

func siteXML(properties []property) string {
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for _, p := range properties {
		b.WriteString("<property><name>" + p.name + "</name><value>")
		_ = xml.EscapeText(&b, []byte(p.value)) // a Builder's writes do not fail
		b.WriteString("</value></property>\n")
	}
	b.WriteString("</configuration>\n")
	return b.String()
}

// hostsText returns a node's hosts file, Java's only source of names in the lab.
func hostsText(own host.Host, hostname string, nodes []host.Host) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	fmt.Fprintf(&b, "%s %s\n", own.Addr(), own.Name())
	for _, h := range nodes {
		if h.Addr() != own.Addr() {
			fmt.Fprintf(&b, "%s %s\n", h.Addr(), h.Name())
		}
	}
	if hostname != "" && hostname != own.Name() {
		fmt.Fprintf(&b, "%s %s\n", own.Addr(), hostname)
	}
	return b.String()
}
