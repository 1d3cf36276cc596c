package redis

import (
	"errors"
	"slices"
	"testing"
)

func TestResolveRebalance(t *testing.T) {
	for _, test := range []struct {
		kind            kind
		chosen, version string
		want            string
		err             error
	}{
		{redisKind, "", "8.0.6", rebalancePipelined, nil},
		{valkeyKind, "", "8.0.1", rebalancePipelined, nil},
		{valkeyKind, "", "9.1.2", rebalanceNative, nil},
		{valkeyKind, rebalanceCLI, "9.1.2", rebalanceCLI, nil},
		{valkeyKind, rebalancePipelined, "9.1.2", rebalancePipelined, nil},
		{valkeyKind, rebalanceNative, "8.0.1", "", errNotNative},
		{redisKind, rebalanceNative, "9.1.2", "", errNotNative},
	} {
		got, err := test.kind.resolveRebalance(test.chosen, test.version)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s %s, chosen %q: %q, %v; want %q, %v", test.kind.name, test.version, test.chosen, got, err, test.want, test.err)
		}
	}
}

func TestJoinSlots(t *testing.T) {
	got := joinSlots([]int{0, 1, 2, 5, 7, 8})
	if want := []slotRange{{0, 2}, {5, 5}, {7, 8}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestReplyFields(t *testing.T) {
	for _, reply := range []any{
		[]any{"name", "a", "operation", "EXPORT", "state", "success", "create_time", int64(1)},
		map[any]any{"name": "a", "operation": "EXPORT", "state": "success", "create_time": int64(1)},
	} {
		f, err := parseReplyFields(reply)
		if err != nil || f["name"] != "a" || f["operation"] != "EXPORT" || f["state"] != migrationSuccess || f["create_time"] != "1" {
			t.Errorf("%v: %v, %v", reply, f, err)
		}
	}
	for _, reply := range []any{[]any{"name", "a"}, "OK", nil} {
		if _, err := parseReplyFields(reply); err == nil {
			t.Errorf("%v is accepted", reply)
		}
	}
}
