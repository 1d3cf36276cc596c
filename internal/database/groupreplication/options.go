package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// ErrOption marks an invalid option.
var ErrOption = errors.New("invalid option of " + Name)

const (
	// groupPort is the port of the group channel.
	groupPort = 33061
	// maxMembers is the largest group that MySQL supports.
	maxMembers = 9
)

// consistencies are the values of group_replication_consistency.
var consistencies = []string{"EVENTUAL", "BEFORE_ON_PRIMARY_FAILOVER", "BEFORE", "AFTER", "BEFORE_AND_AFTER"}

// options are a cluster's settings. Unset ones keep MySQL's default, except memory, and the logs,
// which are not forced to disk so that disks do not hide the effects of networks.
type options struct {
	port, flush, sync, connections int
	buffer, cache                  int64 // bytes
	single                         bool
	primary                        string // the node of the first primary, "" for the first node
	member, reads                  string
	group                          mysql.Settings // variables of the plugin
}

var optionNames = []string{
	"group_replication_consistency", "group_replication_flow_control_applier_threshold",
	"group_replication_flow_control_certifier_threshold", "group_replication_flow_control_mode",
	"group_replication_member_expel_timeout", "group_replication_message_cache_size",
	"group_replication_paxos_single_leader", "group_replication_unreachable_majority_timeout",
	"innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit", "max_connections", "member", "port", "primary", "reads",
	"single_primary", "sync_binlog",
}

func parseOptions(nodes int, given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, optionNames...)
	o := options{
		port:        r.Int("port", 1, 65535, mysql.Port),
		flush:       r.Int("innodb_flush_log_at_trx_commit", 0, 2, 2),
		sync:        r.Int("sync_binlog", 0, 1<<30, 0),
		connections: r.Int("max_connections", 10, 100_000, 500),
		buffer:      r.Bytes("innodb_buffer_pool_size", 64<<20),
		cache:       r.Bytes("group_replication_message_cache_size", 128<<20),
		single:      r.Bool("single_primary", true),
		primary:     r.Text("primary", ""),
		member:      r.Choice("member", mysql.Nearest, mysql.Members()...),
		reads:       r.Choice("reads", mysql.ReadsPrimary, mysql.ReadsPrimary, mysql.ReadsMember),
	}
	for _, n := range []string{"group_replication_flow_control_applier_threshold", "group_replication_flow_control_certifier_threshold"} {
		if r.Has(n) {
			o.group.Add(n, r.Int(n, 0, 1<<31-1, 0))
		}
	}
	if n := "group_replication_consistency"; r.Has(n) {
		o.group.Add(n, r.Choice(n, "", consistencies...))
	}
	if n := "group_replication_flow_control_mode"; r.Has(n) {
		o.group.Add(n, r.Choice(n, "", "QUOTA", "DISABLED"))
	}
	if n := "group_replication_paxos_single_leader"; r.Has(n) {
		o.group.Add(n, onOff(r.Bool(n, false)))
	}
	for _, n := range []string{"group_replication_member_expel_timeout", "group_replication_unreachable_majority_timeout"} {
		if !r.Has(n) {
			continue
		}
		// 0 is valid for both and has no unit.
		var d time.Duration
		if r.Text(n, "") != "0" {
			d = r.Duration(n, time.Second)
		}
		s, err := mysql.WholeSeconds(n, d)
		if err != nil {
			r.Reject(n, "a whole number of seconds (5s)")
		}
		o.group.Add(n, s)
	}
	switch {
	case o.cache < 128<<20:
		r.Reject("group_replication_message_cache_size", "128MiB or more")
	case o.buffer < 5<<20:
		r.Reject("innodb_buffer_pool_size", "5MiB or more")
	case o.port == groupPort:
		r.Reject("port", "free: members talk there")
	}
	if r.Err() == nil && (nodes < 1 || nodes > maxMembers) {
		return o, fmt.Errorf("%w: a group of %d: MySQL supports 1 to %d members", ErrOption, nodes, maxMembers)
	}
	return o, r.Err()
}

func onOff(b bool) string {
	if b {
		return "ON"
	}
	return "OFF"
}

// group is the name of the group: any UUID that is no server's.
const group = "736b6572-7279-11ee-8000-000000000001"

// installSettings returns the variables that a data directory is created with.
func (o options) installSettings(ctx context.Context, on files.System, in database.Installation) (mysql.Settings, error) {
	base := mysql.InstallBase(ctx, on, in, "mysqld")
	plugins := mysql.FindBelow(ctx, on, base, "lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin", "lib/*/mysql/plugin")
	if plugins == "" || mysql.FindBelow(ctx, on, plugins, "group_replication.so") == "" {
		return nil, fmt.Errorf("finding Group Replication: no plugin group_replication.so below %s/lib", base)
	}
	s := mysql.InstallSettings(ctx, on, in, o.buffer)
	s.Add("plugin-dir", plugins)
	return s, nil
}

func (o options) settings(h host.Host, install mysql.Settings, id int, seeds []string) mysql.Settings {
	s := slices.Clone(install)
	s.AddServer(h, filepath.Join(h.Dir(), Name, "data"), o.port, o.connections)
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

	// The server reads the file before the plugin is loaded, so that the plugin's variables need this form.
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
