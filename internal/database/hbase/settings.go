package hbase

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/files"
)

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client. Those that YCSB's own HBase binding has mean the same.
const (
	PropQuorum    = "hbase.zookeeper.quorum" // host:port,host:port,...: ZooKeeper
	PropFamily    = "columnfamily"           // default "family"
	PropTimeout   = "hbase.timeout"          // milliseconds for one attempt, and for an operation that nothing else bounds; default 10000
	PropRetries   = "hbase.retries"          // attempts after the first; default 15, HBase's own
	PropPause     = "hbase.pause"            // milliseconds before the second attempt, more before later ones; default 100, HBase's own
	PropJava      = "hbase.java"             // the Java that runs the bridge; default: that of the installation
	PropClassPath = "hbase.classpath"        // the bridge's classes and HBase's jars; default: those of the installation
	PropHeap      = "hbase.heap"             // of the bridge, in MiB; default 128
	PropHosts     = "hbase.hosts"            // a hosts file that the bridge uses in place of a name server
	PropBridge    = "hbase.bridge"           // host:port of a bridge that runs already, for clients with the default settings
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropQuorum, PropFamily, PropTimeout, PropRetries, PropPause, PropJava, PropClassPath, PropHeap, PropHosts, PropBridge}
}

const (
	defaultTimeout = 10 * time.Second
	defaultRetries = 15
	defaultPause   = 100 * time.Millisecond
	defaultHeap    = 128 // MiB
)

// settings are the client's properties, understood.
type settings struct {
	quorum, family         string
	timeout, pause         time.Duration
	retries, heap          int
	java, classpath, hosts string
	bridgeAddr             string
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "hbase.", p, Properties()...)
	// Addresses are separated in the form that HBase itself takes them in.
	quorum := ""
	for i, a := range r.Addresses(PropQuorum, portZooKeeper) {
		if i > 0 {
			quorum += ","
		}
		quorum += a
	}
	s := settings{
		quorum: quorum, family: r.Text(PropFamily, family),
		timeout: r.Milliseconds(PropTimeout, defaultTimeout), pause: r.Milliseconds(PropPause, defaultPause),
		retries: r.Int(PropRetries, 0, 1000, defaultRetries), heap: r.Int(PropHeap, minHeap/mib, 1<<20, defaultHeap),
		java: r.Text(PropJava, ""), classpath: r.Text(PropClassPath, ""), hosts: r.Text(PropHosts, ""), bridgeAddr: r.Text(PropBridge, ""),
	}
	return s, r.Err()
}

// isDefault tells whether the settings are those of a standing bridge, which no client chose.
func (s settings) isDefault() bool {
	return s.family == family && s.timeout == defaultTimeout && s.pause == defaultPause && s.retries == defaultRetries
}

// bridgeCommand runs a bridge for clients, on a machine with those files.
func (s settings) bridgeCommand(ctx context.Context, on files.System, more ...property) command {
	jar, _, _ := strings.Cut(s.classpath, ":")
	return bridgeCommand(s.java, s.classpath, s.hosts, int64(s.heap)*mib, archiveFlags(ctx, on, jar, s.java), append(s.bridgeProperties(), more...))
}

// bridgeProperties are the settings of a bridge for clients: HBase's library tries once and
// leaves the rest to the bridge.
func (s settings) bridgeProperties() []property {
	return []property{
		{"hbase.zookeeper.quorum", s.quorum},
		{"hbase.client.retries.number", "0"},
		{"hbase.client.pause", strconv.FormatInt(s.pause.Milliseconds(), 10)},
		{"hbase.client.operation.timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)},
		{"hbase.client.meta.operation.timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)},
		{"hbase.rpc.timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)},
		{"bridge.family", s.family},
		{"bridge.timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)},
		{"bridge.retries", strconv.Itoa(s.retries)},
		{"bridge.pause", strconv.FormatInt(s.pause.Milliseconds(), 10)},
	}
}
