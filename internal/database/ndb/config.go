package ndb

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// member is a node of the lab in the cluster: a data node and a SQL node.
type member struct {
	*mysql.Server
	id int // of its data node
}

func (m member) sqlID() int      { return sqlID + m.id }
func (m member) dataDir() string { return filepath.Join(m.Dir, "ndb") }

// noGroup is the node group of a data node that is in none until CREATE NODEGROUP. Without
// it the management node refuses nodes that are not enough for one.
const noGroup = 65536

// config is config.ini: what the management node tells all others. The cluster was formed
// with data nodes up to the identifier formed; later ones are in no node group as far as
// this file goes.
func (o options) config(manager host.Host, members []member, formed int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("[ndbd default]")
	line("NoOfReplicas=%d", o.replicas)
	line("DataMemory=%d", o.data)
	line("SharedGlobalMemory=33554432")
	line("DiskPageBufferMemory=4194304") // the least: no table is on disk
	line("MaxNoOfExecutionThreads=%d", o.threads)
	line("NoOfFragmentLogFiles=4")
	line("InitFragmentLogFiles=SPARSE")
	line("ServerPort=%d", dataPort)
	if o.heartbeat > 0 {
		line("HeartbeatIntervalDbDb=%d", o.heartbeat.Milliseconds())
	}
	if o.checkpoint > 0 {
		line("TimeBetweenGlobalCheckpoints=%d", o.checkpoint.Milliseconds())
	}
	if o.deadlock > 0 {
		line("TransactionDeadlockDetectionTimeout=%d", o.deadlock.Milliseconds())
	}
	line("\n[ndb_mgmd]\nNodeId=%d\nHostName=%s\nPortNumber=%d\nDataDir=%s", manageID, manager.Addr(), managePort, manageDir(manager))
	for _, m := range members {
		line("\n[ndbd]\nNodeId=%d\nHostName=%s\nDataDir=%s", m.id, m.Host.Addr(), m.dataDir())
		if m.id > formed {
			line("NodeGroup=%d", noGroup)
		}
	}
	for _, m := range members {
		line("\n[mysqld]\nNodeId=%d\nHostName=%s", m.sqlID(), m.Host.Addr())
	}
	return b.String()
}

// manageDir is the management node's own directory.
func manageDir(h host.Host) string { return filepath.Join(h.Dir(), Name+"-management") }

// storage is the settings that a SQL node's data directory is made with as well.
func storage(ctx context.Context, on files.System, in database.Installation) mysql.Settings {
	base := mysql.InstallBase(ctx, on, in, "mysqld")
	var s mysql.Settings
	s.Add("basedir", base)
	if d := mysql.FindBelow(ctx, on, base, "share/mysql/english", "share/english"); d != "" {
		s.Add("lc-messages-dir", filepath.Dir(d))
	}
	if d := mysql.FindBelow(ctx, on, base, "share/mysql/charsets", "share/charsets"); d != "" {
		s.Add("character-sets-dir", d)
	}
	s.Add("mysqlx", 0)
	s.Add("secure-file-priv", "NULL")        // otherwise it wants a folder of the system's
	s.Add("innodb-buffer-pool-size", 16<<20) // rows are NDB's: InnoDB has the server's own tables
	s.Add("innodb-redo-log-capacity", 32<<20)
	return s
}

// settings are a SQL node's configuration.
func (o options) settings(m member, storage mysql.Settings, connect string) mysql.Settings {
	s := append(mysql.Settings{}, storage...)
	s.Add("datadir", m.Data())
	s.Add("bind-address", m.Host.Addr())
	s.Add("port", o.port)
	s.Add("socket", "server.sock") // in the data directory: its path has a limit
	s.Add("pid-file", "server.pid")
	s.Add("skip-name-resolve", "ON")
	s.Add("skip-log-bin", "ON")
	s.Add("performance-schema", "OFF")
	s.Add("max-connections", o.connections)
	s.Add("server-id", m.id)
	s.Add("ndbcluster", "ON")
	s.Add("ndb-connectstring", connect)
	s.Add("ndb-nodeid", m.sqlID())
	return s
}
