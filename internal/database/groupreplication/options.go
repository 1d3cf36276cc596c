package groupreplication

import (
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
)

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("bad option of " + Name)

const (
	// groupPort is where members talk.
	groupPort = 33061
	// maxMembers is the largest group that MySQL supports.
	maxMembers = 9
)

// consistencies are the values of group_replication_consistency.
var consistencies = []string{"EVENTUAL", "BEFORE_ON_PRIMARY_FAILOVER", "BEFORE", "AFTER", "BEFORE_AND_AFTER"}

// options are a cluster's settings. What is not named keeps MySQL's own default, but for
// memory, and for the logs, which are not forced to disk, so that disks do not blur what
// networks do.
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

// parseOptions understands the options of a cluster on so many nodes.
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
		// 0 is a value of both, and has no unit.
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
