package groupreplication

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

// group is the name of the group: any UUID that is no server's.
const group = "736b6572-7279-11ee-8000-000000000001"

// files are the settings of where an installation keeps what a server needs.
func locate(ctx context.Context, on files.System, in database.Installation) (mysql.Settings, error) {
	base := mysql.InstallBase(ctx, on, in, "mysqld")
	plugins := mysql.FindBelow(ctx, on, base, "lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin", "lib/*/mysql/plugin")
	if plugins == "" || mysql.FindBelow(ctx, on, plugins, "group_replication.so") == "" {
		return nil, fmt.Errorf("finding Group Replication: no plugin group_replication.so below %s/lib", base)
	}
	var s mysql.Settings
	s.Add("basedir", base)
	s.Add("plugin-dir", plugins)
	if d := mysql.FindBelow(ctx, on, base, "share/mysql/english", "share/english"); d != "" {
		s.Add("lc-messages-dir", filepath.Dir(d))
	}
	if d := mysql.FindBelow(ctx, on, base, "share/mysql/charsets", "share/charsets"); d != "" {
		s.Add("character-sets-dir", d)
	}
	return s, nil
}

// storage is the settings that a data directory is made with as well.
func (o options) storage() mysql.Settings {
	var s mysql.Settings
	s.Add("mysqlx", 0)
	s.Add("secure-file-priv", "NULL") // otherwise it wants a folder of the system's
	s.Add("innodb-buffer-pool-size", o.buffer)
	s.Add("innodb-redo-log-capacity", 32<<20)
	return s
}

// settings are a member's configuration. Seeds are the members that it asks to be let in.
// The server's own statistics are off: they take a quarter of its memory, and the members
// of the group are told all the same.
func (o options) settings(h host.Host, installed mysql.Settings, id int, seeds []string) mysql.Settings {
	s := append(append(mysql.Settings{}, installed...), o.storage()...)
	s.Add("datadir", filepath.Join(h.Dir(), Name, "data"))
	s.Add("bind-address", h.Addr())
	s.Add("port", o.port)
	s.Add("socket", "server.sock") // in the data directory: its path has a limit
	s.Add("pid-file", "server.pid")
	s.Add("skip-name-resolve", "ON")
	s.Add("max-connections", o.connections)
	s.Add("performance-schema", "OFF")
	s.Add("key-buffer-size", "1M")
	s.Add("tmp-table-size", "4M")
	s.Add("table-open-cache", 200)
	s.Add("table-definition-cache", 400)

	s.Add("innodb-flush-log-at-trx-commit", o.flush)
	s.Add("sync-binlog", o.sync)
	s.Add("log-bin", "binlog")
	s.Add("relay-log", "relay")
	s.Add("gtid-mode", "ON")
	s.Add("enforce-gtid-consistency", "ON")
	s.Add("server-id", id)
	s.Add("report-host", h.Addr())
	s.Add("report-port", o.port)

	// An option file that the server reads before the plugin is there may name the
	// plugin's variables only in this way.
	s.Add("plugin-load-add", "group_replication.so")
	add := func(name string, value any) { s.Add("loose-group-replication-"+name, value) }
	add("group-name", group)
	add("start-on-boot", "OFF")
	add("bootstrap-group", "OFF")
	add("local-address", fmt.Sprintf("%s:%d", h.Addr(), groupPort))
	add("group-seeds", strings.Join(seeds, ","))
	add("ip-allowlist", "0.0.0.0/0")
	add("communication-stack", "XCOM")
	add("recovery-get-public-key", "ON")
	add("single-primary-mode", onOff(o.single))
	add("enforce-update-everywhere-checks", onOff(!o.single))
	add("message-cache-size", o.cache)
	for _, v := range o.group {
		s.Add("loose-"+v.Name, v.Value)
	}
	return s
}
