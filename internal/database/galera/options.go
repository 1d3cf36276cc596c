package galera

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// ErrOption marks an invalid option.
var ErrOption = errors.New("invalid option of galera")

const (
	groupPort = 4567 // of the group channel
	copyPort  = 4568 // where missing transactions are received
	statePort = 4444 // where a full copy is received
)

// ports are the ports that a member listens on in addition to the clients'.
var ports = []int{groupPort, copyPort, statePort}

var providerTimes = []struct{ option, name string }{
	{"evs_keepalive_period", "evs.keepalive_period"},
	{"evs_suspect_timeout", "evs.suspect_timeout"},
	{"evs_inactive_timeout", "evs.inactive_timeout"},
	{"evs_inactive_check_period", "evs.inactive_check_period"},
	{"evs_install_timeout", "evs.install_timeout"},
	{"evs_join_retrans_period", "evs.join_retrans_period"},
}

// options are a cluster's settings. Unset ones keep MariaDB's default, except memory, and the
// log, which is not forced to disk so that disks do not hide the effects of networks.
type options struct {
	port, threads, flush, syncWait, connections int
	buffer, log                                 int64 // bytes
	cache                                       int64
	sst, member                                 string
	segments                                    bool
	provider                                    []string // further ones, "name=value"
}

var optionNames = []string{
	"evs_inactive_check_period", "evs_inactive_timeout", "evs_install_timeout", "evs_join_retrans_period",
	"evs_keepalive_period", "evs_send_window", "evs_suspect_timeout", "evs_user_send_window",
	"gcache_size", "gcs_fc_factor", "gcs_fc_limit", "gcs_fc_single_primary",
	"innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit", "innodb_log_file_size", "max_connections", "member", "port",
	"segments", "wsrep_provider_options", "wsrep_slave_threads", "wsrep_sst_method", "wsrep_sync_wait",
}

func parseOptions(nodes int, given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, optionNames...)
	o := options{
		port:        r.Int("port", 1, 65535, mysql.Port),
		threads:     r.Int("wsrep_slave_threads", 1, 512, 1),
		flush:       r.Int("innodb_flush_log_at_trx_commit", 0, 2, 2),
		syncWait:    r.Int("wsrep_sync_wait", 0, 15, 0),
		connections: r.Int("max_connections", 10, 100_000, 500),
		buffer:      r.Bytes("innodb_buffer_pool_size", 64<<20),
		log:         r.Bytes("innodb_log_file_size", 16<<20),
		cache:       r.Bytes("gcache_size", 32<<20),
		sst:         r.Choice("wsrep_sst_method", "rsync", "rsync", "mariabackup"),
		member:      r.Choice("member", mysql.Nearest, mysql.Members()...),
		segments:    r.Bool("segments", false),
	}
	times := make(map[string]time.Duration)
	for _, t := range providerTimes {
		if r.Has(t.option) {
			times[t.option] = r.Duration(t.option, time.Second)
		}
	}
	deriveTimes(r, times)
	for _, t := range providerTimes {
		if d, ok := times[t.option]; ok {
			o.provider = append(o.provider, t.name+"="+period(d))
		}
	}
	for _, n := range []struct {
		option, name string
		high         int
	}{
		{"evs_send_window", "evs.send_window", 1 << 16}, {"evs_user_send_window", "evs.user_send_window", 1 << 16},
		{"gcs_fc_limit", "gcs.fc_limit", 1 << 30},
	} {
		if r.Has(n.option) {
			o.provider = append(o.provider, fmt.Sprintf("%s=%d", n.name, r.Int(n.option, 1, n.high, 1)))
		}
	}
	if f := r.Text("gcs_fc_factor", ""); f != "" {
		var v float64
		if n, err := fmt.Sscanf(f, "%g", &v); n != 1 || err != nil || v <= 0 || v > 1 {
			r.Reject("gcs_fc_factor", "a number above 0, at most 1")
		}
		o.provider = append(o.provider, "gcs.fc_factor="+f)
	}
	if r.Has("gcs_fc_single_primary") {
		o.provider = append(o.provider, "gcs.fc_single_primary="+yesNo(r.Bool("gcs_fc_single_primary", false)))
	}
	for p := range strings.SplitSeq(r.Text("wsrep_provider_options", ""), ";") {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		if name, _, ok := strings.Cut(p, "="); !ok || !strings.Contains(name, ".") {
			r.Reject("wsrep_provider_options", "a list of name=value, separated by semicolons")
		}
		o.provider = append(o.provider, p)
	}
	if r.Err() == nil && nodes < 1 {
		return o, fmt.Errorf("%w: a cluster of %d nodes", ErrOption, nodes)
	}
	if o.buffer < 5<<20 {
		r.Reject("innodb_buffer_pool_size", "5MiB or more")
	}
	if o.log < 4<<20 {
		r.Reject("innodb_log_file_size", "4MiB or more")
	}
	for _, p := range ports {
		if o.port == p {
			r.Reject("port", "free: Galera itself listens there")
		}
	}
	return o, r.Err()
}

// deriveTimes shortens periods that must be below a short suspicion timeout; Galera checks that.
func deriveTimes(r *database.SettingReader, times map[string]time.Duration) {
	suspect, ok := times["evs_suspect_timeout"]
	if !ok {
		return
	}
	const inactive = 15 * time.Second // Galera's own
	if given, ok := times["evs_inactive_timeout"]; suspect > inactive && !ok || ok && suspect > given {
		r.Reject("evs_suspect_timeout", "at most evs_inactive_timeout ("+inactive.String()+" unless set)")
	}
	if suspect < 500*time.Millisecond {
		r.Reject("evs_suspect_timeout", "500ms or more")
	}
	for name, own := range map[string]time.Duration{"evs_keepalive_period": time.Second, "evs_inactive_check_period": 500 * time.Millisecond} {
		if _, ok := times[name]; !ok && own > suspect/4 {
			times[name] = suspect / 4
		}
	}
}

// period formats a time as ISO 8601.
func period(d time.Duration) string { return fmt.Sprintf("PT%gS", d.Seconds()) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

type parts struct {
	base, plugins, messages, charsets, provider string
}

// locate finds the parts. Debian keeps the provider in a separate folder.
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

func (o options) settings(h host.Host, f parts, group []string, segment int) mysql.Settings {
	var s mysql.Settings
	s.Add("basedir", f.base)
	s.AddServer(h, filepath.Join(h.Dir(), Name, "data"), o.port, o.connections)
	s.Add("tmpdir", filepath.Join(h.Dir(), Name)) // a server removes what others have left in it, also while they are at it
	s.Add("plugin-dir", f.plugins)
	s.Add("lc-messages-dir", f.messages)
	s.Add("character-sets-dir", f.charsets)
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
	// Since MariaDB 11, a plugin of nearly the same name makes every provider option a variable and then refuses
	// to change wsrep_provider_options, which forcePrimary does. Older servers lack the plugin.
	s.Add("loose-plugin-wsrep-provider", "OFF")
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
