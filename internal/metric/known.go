package metric

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/spell"
)

// ErrUnknown says that there is no such metric.
var ErrUnknown = errors.New("no such metric")

// plain are the metrics that stand for themselves.
var plain = map[string]Unit{
	"goodput": Rate, "throughput": Rate, "availability": Share, "ok": Number, "failed": Number, "unknown": Number,
	"dropped": Number, "retries": Number, "traffic.total": Bytes, "traffic.data": Bytes, "lost_writes": Number,
	"stale_copies": Number, "unexpected_values": Number, "unread_keys": Number, "host.cpu": Cores, "client.cpu": Cores,
}

// ofEvents are the metrics of an event.
var ofEvents = map[string]Unit{
	"accepted": Time, "complete": Time, "availability": Share, "availability_time": Share, "unresponsive": Time,
	"unresponsive_periods": Number, "longest_unresponsive": Time, "takeover": Time, "recover": Time, "dip": Share,
	"dip_ops": Number, "overshoot_ops": Number, "sla_violation": Time,
}

// operations are those that have latencies.
var operations = []string{"read", "update", "insert", "scan", "read_modify_write", "delete", "list", "stat", "create", "mkdir", "rename", "remove", "rmdir"}

// Name is a metric's name taken apart.
type Name struct {
	Unit Unit
	// Operation and Event are what it is of, "" for neither.
	Operation, Event string
	// Audit says that only an audit gives it.
	Audit bool
}

// Parse tells what a name is of. The error wraps ErrUnknown and has the nearest spelling.
func Parse(name string) (Name, error) {
	if u, ok := plain[name]; ok {
		return Name{Unit: u, Audit: slices.Contains([]string{"lost_writes", "stale_copies", "unexpected_values", "unread_keys"}, name)}, nil
	}
	head, rest, _ := strings.Cut(name, ".")
	if head == "events" {
		if i := strings.LastIndexByte(rest, '.'); i > 0 {
			u, ok := ofEvents[rest[i+1:]]
			if !ok {
				return Name{}, unknown(name, rest[i+1:], keys(ofEvents), func(s string) string { return "events." + rest[:i+1] + s })
			}
			return Name{Unit: u, Event: rest[:i]}, nil
		}
		return Name{}, fmt.Errorf("%w %q: write events.NAME.recover, with the name or kind of an event", ErrUnknown, name)
	}
	if slices.Contains(operations, head) && rest != "" {
		figure := strings.TrimPrefix(rest, "service.")
		switch {
		case slices.Contains(latencies, figure):
			return Name{Unit: Time, Operation: head}, nil
		case rest == "count" || rest == "failed":
			return Name{Unit: Number, Operation: head}, nil
		}
		return Name{}, unknown(name, rest, append(slices.Clone(latencies), "count", "failed"), func(s string) string { return head + "." + s })
	}
	known := keys(plain)
	for _, o := range operations {
		known = append(known, o+".p95", o+".p99")
	}
	return Name{}, unknown(name, name, known, func(s string) string { return s })
}

func unknown(name, part string, known []string, whole func(string) string) error {
	if near := spell.Nearest(part, known); near != "" {
		return fmt.Errorf("%w %q: did you mean %q?", ErrUnknown, name, whole(near))
	}
	slices.Sort(known)
	return fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(known, ", "))
}

func keys(m map[string]Unit) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}
