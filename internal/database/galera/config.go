package galera

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

// parts are where an installation keeps what a server needs.
type parts struct {
	base, plugins, messages, charsets, provider string
}

// locate finds them. Debian keeps the provider in a folder of its own.
func locate(ctx context.Context, on files.System, in database.Installation) (parts, error) {
	base := mysql.InstallBase(ctx, on, in, "mariadb-install-db")
	f := parts{
		base:     base,
		plugins:  mysql.FindBelow(ctx, on, base, "lib/mysql/plugin", "lib/*/mariadb*/plugin", "lib/plugin", "lib64/mysql/plugin"),
		messages: mysql.FindBelow(ctx, on, base, "share/mysql", "share/mariadb", "share"),
		charsets: mysql.FindBelow(ctx, on, base, "share/mysql/charsets", "share/mariadb/charsets", "share/charsets"),
		provider: mysql.FindBelow(ctx, on, base, "lib/galera/libgalera_smm.so", "lib/galera-4/libgalera_smm.so", "lib64/galera*/libgalera_smm.so",
			"lib/libgalera_smm.so"),
	}
	if f.provider == "" {
		f.provider = mysql.FindBelow(ctx, on, "/", "usr/lib/galera/libgalera_smm.so", "usr/lib64/galera*/libgalera_smm.so")
	}
	if f.provider == "" {
		return f, fmt.Errorf("finding Galera: no libgalera_smm.so in %s or the system's own folders", base)
	}
	return f, nil
}

// settings are a member's configuration. Group is the addresses of all members.
func (o options) settings(h host.Host, f parts, group []string, segment int) mysql.Settings {
	var s mysql.Settings
	s.Add("basedir", f.base)
	s.Add("datadir", filepath.Join(h.Dir(), Name, "data"))
	s.Add("tmpdir", filepath.Join(h.Dir(), Name)) // a server removes what others have left in it, also while they are at it
	s.Add("plugin-dir", f.plugins)
	s.Add("lc-messages-dir", f.messages)
	s.Add("character-sets-dir", f.charsets)
	s.Add("bind-address", h.Addr())
	s.Add("port", o.port)
	s.Add("socket", "server.sock") // in the data directory: its path has a limit
	s.Add("pid-file", "server.pid")
	s.Add("skip-name-resolve", "ON")
	s.Add("max-connections", o.connections)
	s.Add("performance-schema", "OFF")
	s.Add("key-buffer-size", "1M")
	s.Add("aria-pagecache-buffer-size", "1M")

	s.Add("default-storage-engine", "InnoDB")
	s.Add("binlog-format", "ROW")
	s.Add("innodb-autoinc-lock-mode", 2)
	s.Add("innodb-flush-log-at-trx-commit", o.flush)
	s.Add("innodb-buffer-pool-size", o.buffer)
	s.Add("innodb-log-file-size", o.log)

	s.Add("wsrep-on", "ON")
	s.Add("wsrep-provider", f.provider)
	s.Add("wsrep-cluster-name", "skerry")
	s.Add("wsrep-cluster-address", "gcomm://"+strings.Join(group, ","))
	s.Add("wsrep-node-name", h.Name())
	s.Add("wsrep-node-address", h.Addr())
	s.Add("wsrep-node-incoming-address", fmt.Sprintf("%s:%d", h.Addr(), o.port))
	s.Add("wsrep-sst-method", o.sst)
	if o.sst == "mariabackup" {
		s.Add("wsrep-sst-auth", mysql.User+":")
	}
	s.Add("wsrep-slave-threads", o.threads)
	s.Add("wsrep-sync-wait", o.syncWait)
	provider := []string{
		fmt.Sprintf("gmcast.listen_addr=tcp://%s:%d", h.Addr(), groupPort),
		fmt.Sprintf("ist.recv_addr=%s:%d", h.Addr(), copyPort),
		fmt.Sprintf("gcache.size=%d", o.cache),
	}
	if o.segments {
		provider = append(provider, fmt.Sprintf("gmcast.segment=%d", segment))
	}
	s.Add("wsrep-provider-options", strings.Join(append(provider, o.provider...), ";"))
	return s
}
